#!/usr/bin/env python3
"""Whether something is true of the objects in a file of Kubernetes manifests; exit code 1 when it is not.

usage: look.py FILE EXPRESSION

In the Python expression, `it` is {(kind, name): object}; the functions below may be used.
"""

import sys

import yaml

POD = "app.kubernetes.io/name"


def container(workload):
    """The first container of the workload's pods."""
    return workload["spec"]["template"]["spec"]["containers"][0]


def command(workload):
    return container(workload)["command"]


def probes(workload):
    """The commands that say whether the first container is ready, and whether it is alive."""
    return tuple(" ".join(container(workload)[kind]["exec"]["command"]) for kind in ("readinessProbe", "livenessProbe"))


def target(autoscaler):
    """The average value that the autoscaler's first metric is to have."""
    return autoscaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"]


def workloads(it):
    """Labels of all pods."""
    return {one["spec"]["template"]["metadata"]["labels"][POD] for (kind, _), one in it.items()
            if kind in ("StatefulSet", "DaemonSet", "Deployment")}


def policies(it):
    """Labels of the pods that network policies are for."""
    return {one["spec"]["podSelector"]["matchLabels"][POD] for (kind, _), one in it.items() if kind == "NetworkPolicy"}


def services(it):
    """Labels of the pods that services lead to."""
    return {one["spec"]["selector"][POD] for (kind, _), one in it.items() if kind == "Service"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        it = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(file) if one is not None}
    names = {"it": it, "command": command, "probes": probes, "target": target, "workloads": workloads, "policies": policies,
             "services": services}
    found = eval(sys.argv[2], names)  # of the test that calls this, not of a stranger
    print(found)
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()

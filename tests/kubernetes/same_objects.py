#!/usr/bin/env python3
"""Compares the objects of two files of Kubernetes manifests and prints where they differ; exit code 1 when they do.

Not compared: namespace objects and names of namespaces, which an installation by Helm chooses; labels of the objects
themselves; the hash that kustomize adds to the names of ConfigMaps; defaults that one side writes down.

usage: same_objects.py FILE FILE
"""

import re
import sys

import yaml

# What one side says and the other leaves to Kubernetes, or is only there for other values.
DEFAULTS = {"imagePullPolicy": "IfNotPresent"}
HASH = re.compile(r"^(terse-authority)-[a-z0-9]{10}$")
HOSTS = {"name": "TERSE_HOSTS",
         "value": "terse-coordinator terse-coordinator.terse.svc terse-coordinator.terse.svc.cluster.local"}


def normal(value):
    """The value without what is not compared."""
    if isinstance(value, dict):
        return {key: normal(one) for key, one in value.items() if DEFAULTS.get(key) != one and one != [HOSTS]}
    if isinstance(value, list):
        return [normal(one) for one in value]
    return HASH.sub(r"\1", value) if isinstance(value, str) else value


def objects_of(path):
    """{(kind, name): object} of a file."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for one in yaml.safe_load_all(file):
            if one is None or one["kind"] == "Namespace":
                continue
            one["metadata"] = {"name": HASH.sub(r"\1", one["metadata"]["name"])}
            found[one["kind"], one["metadata"]["name"]] = normal(one)
    return found


def differences(left, right, place):
    """Lines that say where the two differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys(), key=str):
            yield from differences(left.get(key), right.get(key), f"{place}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right)):
            yield from differences(one, other, f"{place}[{number}]")
    elif left != right:
        yield f"{place}: {left!r} and {right!r}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    left, right = (objects_of(path) for path in sys.argv[1:])
    found = list(differences({"/".join(key): one for key, one in left.items()},
                             {"/".join(key): one for key, one in right.items()}, ""))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Flower, the same Flower app with terse.flower, and Terse, side by side on one machine: bench/rivals/README.md."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import network

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LENET = ROOT / "tests" / "python" / "lenet.py"
CODECS = {"terse": "terse.codecs.sbc(density={density})", "terse-dense": "terse.codecs.dense()"}
RIVALS = ("flower", "flower+terse", "terse", "terse-dense")

PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "rivals"
version = "1.0.0"
description = "LeNet5 on MNIST"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "terse"
[tool.flwr.app.components]
serverapp = "{module}:server"
clientapp = "{module}:client"
[tool.flwr.app.config]
{config}
"""

MAKE_RUN = """
import sys, terse
from training import start_model
rounds, steps, clients, seed = map(int, sys.argv[3:7])
run = terse.Run("rivals", model=start_model(seed), codec={codec}, rounds=rounds, clients=clients, local_steps=steps,
                seed=seed, settings={{"rounds": {{"quorum": clients, "deadline_seconds": 600}}}})
run.create(sys.argv[2], admin=sys.argv[1])
"""


class Processes:
    """The processes of one rival, each with a log; they end with it."""

    def __init__(self, folder):
        self.folder, self._running = folder, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self._running):  # each leads a group, in which Flower's processes start more
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def start(self, name, command, environment):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def run(self, name, command, environment):
        if self.start(name, command, environment).wait() != 0:
            raise SystemExit(f"{name} failed: {(self.folder / f'{name}.log').read_text()[-2000:]}")


def environment_of(options, **more):
    paths = [ROOT / "python", HERE, LENET.parent] + [options.terse_path] * bool(options.terse_path)
    return {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "FLWR_TELEMETRY_ENABLED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERSE_BIN": str(options.bin),
        "PYTHONPATH": ":".join(map(str, reversed(paths))),
        **more,
    }


def wait_for(condition, what, seconds):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def write_app(options, folder, module, out):
    """The app's folder: its modules, and the settings in pyproject.toml."""
    folder.mkdir()
    for file in (LENET, HERE / "training.py", HERE / "flower_plain.py", HERE / f"{module}.py"):
        shutil.copy(file, folder)
    config = {
        "rounds": options.rounds,
        "steps": options.steps,
        "clients": options.clients,
        "seed": options.seed,
        "density": options.density,
        "data": str(options.data),
        "out": str(out),
    }
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in config.items())
    (folder / "pyproject.toml").write_text(PYPROJECT.format(module=module, config=text))


def run_flower(options, net, folder, module):
    """One SuperLink and a SuperNode for each client, as Flower deploys them. Returns when rounds ended, and the accuracy."""
    out, home = folder / "result.json", folder / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "bench"\n[superlink.bench]\naddress = "{network.SERVER}:8000"\n' "insecure = true\n"
    )
    write_app(options, folder / "app", module, out)
    with Processes(folder) as processes:
        at = environment_of(options, FLWR_HOME=str(home))
        # A SuperLink does not tell anybody that an app could not be imported.
        processes.run("import", [sys.executable, "-c", f"import sys; sys.path[:0] = ['app']; import {module}"], at)
        processes.start(
            "superlink",
            net.in_server(
                ["flower-superlink", "--insecure", "--host", network.SERVER, "--disable-runtime-dependency-installation"]
            ),
            at,
        )
        wait_for(
            lambda: subprocess.run(
                net.in_server(["bash", "-c", f"exec 3<>/dev/tcp/{network.SERVER}/8000"]),
                check=False,
                stderr=subprocess.DEVNULL,
            ).returncode
            == 0,
            "the SuperLink serves",
            60,
        )
        for k in range(options.clients):
            config = f'partition-id={k} num-partitions={options.clients} terse-state="{folder / f"state-{k}"}"'
            processes.start(
                f"supernode-{k}",
                net.in_client(
                    k, ["flower-supernode", "--insecure", "--superlink", f"{network.SERVER}:8000", "--node-config", config]
                ),
                environment_of(options, FLWR_HOME=str(folder / f"home-{k}")),
            )
        processes.run("flwr-run", net.in_server(["flwr", "run", folder / "app", "bench"]), at)
        wait_for(out.exists, "the Flower app ends", options.timeout)
        time.sleep(0.5)
    return json.loads(out.read_text())


def run_terse(options, net, folder, codec):
    """A coordinator, and terse.join in each client. Returns when rounds ended, and the accuracy."""
    at, admin = environment_of(options), f"unix:{folder}/admin.sock"
    with Processes(folder) as processes:
        processes.start(
            "coordinator",
            net.in_server(
                [
                    options.bin / "terse-coordinator",
                    "--state",
                    folder / "state",
                    "--insecure",
                    "--listen",
                    f"{network.SERVER}:7700",
                    "--admin",
                    admin,
                    "--log-level",
                    "warn",
                    "--ready-file",
                    folder / "ready",
                ]
            ),
            at,
        )
        wait_for((folder / "ready").exists, "the coordinator serves", 60)
        processes.run(
            "run",
            [
                sys.executable,
                "-c",
                MAKE_RUN.format(codec=codec),
                admin,
                folder / "run",
                options.rounds,
                options.steps,
                options.clients,
                options.seed,
            ],
            at,
        )
        members = [
            processes.start(
                f"client-{k}",
                net.in_client(
                    k,
                    [
                        sys.executable,
                        HERE / "terse_member.py",
                        f"{network.SERVER}:7700",
                        folder / f"client-{k}",
                        options.data,
                        k,
                        options.clients,
                    ],
                ),
                at,
            )
            for k in range(options.clients)
        ]
        for k, member in enumerate(members):
            if member.wait(options.timeout) != 0:
                raise SystemExit((folder / f"client-{k}.log").read_text()[-2000:])
        ask = [options.bin / "tersectl", "--admin", admin]
        rounds = json.loads(subprocess.run([*ask, "rounds", "--json"], check=True, capture_output=True).stdout)
        processes.run("export", [*ask, "export", "--out", folder / "out", "--format", "npz"], at)
    return {
        "ends": [one["committed_us"] * 1e-6 for one in rounds],
        "accuracy": accuracy_of(folder / "out" / "model.npz", options.data),
    }


def accuracy_of(file, data):
    import numpy as np
    import torch
    from training import LeNet5, accuracy

    model = LeNet5()
    with np.load(file) as arrays:
        model.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays})
    return accuracy(model, data)


def measure(options, rival, turn):
    """Runs one rival in a turn, counted from 1. Returns its row."""
    uplink = None if options.link == "none" else options.link
    with network.Network(options.clients, uplink) as net, tempfile.TemporaryDirectory(prefix="rivals-") as name:
        folder = pathlib.Path(options.keep or name) / f"{rival}-{turn}"
        folder.mkdir(parents=True)
        recorder = network.Recorder(net)
        recorder.start()
        if rival.startswith("flower"):
            result = run_flower(options, net, folder, "flower_plain" if rival == "flower" else "flower_compressed")
        else:
            result = run_terse(options, net, folder, CODECS[rival].format(density=options.density))
        recorder.stop()
    return row_of(options, rival, result, recorder)


def row_of(options, rival, result, recorder):
    ends = result["ends"]
    first, last = recorder.at(ends[0]), recorder.at(ends[-1])
    seconds = [after - before for before, after in zip(ends, ends[1:])]

    def mean_between(begin, end, way):
        return statistics.mean(b[way] - a[way] for a, b in zip(begin, end))

    whole = recorder.rows[0][1], recorder.rows[-1][1]
    return {
        "rival": rival,
        "link": options.link,
        "accuracy": result["accuracy"],
        "rounds": len(ends),
        "seconds_median": statistics.median(seconds),
        "seconds_least": min(seconds),
        "seconds_most": max(seconds),
        "bytes_up": mean_between(first, last, 0) / len(seconds),
        "bytes_down": mean_between(first, last, 1) / len(seconds),
        "whole_run_bytes_up": mean_between(*whole, 0),
        "whole_run_bytes_down": mean_between(*whole, 1),
    }


def print_row(row):
    print(
        "| {rival} | {link} | {accuracy:.4f} | {bytes_up:,.0f} | {bytes_down:,.0f} | {seconds_median:.2f} | "
        "{seconds_least:.2f} to "
        "{seconds_most:.2f} | {whole_run_bytes_up:,.0f} | {whole_run_bytes_down:,.0f} |".format(**row),
        flush=True,
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, help="folder with MNIST's four files (default: mnist in TERSE_DATA)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin", help="Terse's programs")
    parser.add_argument(
        "--terse-path", type=pathlib.Path, help="folder to look for the package terse in first, such as an installed one"
    )
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--steps", type=int, default=50, help="optimizer steps of a client in a round, with 128 examples each"
    )
    parser.add_argument("--density", type=float, default=0.05, help="of SBC, up and, with terse.flower, down")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--link", default="none", help="what each client may send, as tbf's rate: none or, for example, 1mbit"
    )
    parser.add_argument("--only", nargs="*", choices=RIVALS, default=RIVALS)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, in turns")
    parser.add_argument("--timeout", type=float, default=7200)
    parser.add_argument("--keep", type=pathlib.Path, help="new folder for everything that a run leaves, its logs included")
    parser.add_argument("--json", type=pathlib.Path, help="file for the rows")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds must be at least 2: seconds and bytes are counted from the end of the first round on")
    options.data = options.data or pathlib.Path(os.environ.get("TERSE_DATA", "TERSE_DATA-is-not-set")) / "mnist"
    for name in ("bin", "data", "terse_path", "keep"):  # the processes have folders of their own
        if getattr(options, name) is not None:
            setattr(options, name, getattr(options, name).resolve())
    if (
        not (options.data / "train-labels-idx1-ubyte").exists()
        and not (options.data / "train-labels-idx1-ubyte.gz").exists()
    ):
        parser.error(f"{options.data} has no MNIST; name its folder with --data, or one above it in TERSE_DATA")
    return options


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that processes and namespaces are removed
    sys.path[:0] = [str(LENET.parent)]
    rows = []
    print("| rival | uplink | accuracy | bytes up | bytes down | s a round | least to most | whole run up | down |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for turn in range(1, options.repeat + 1):
        for rival in options.only:
            rows.append(measure(options, rival, turn))
            print_row(rows[-1])
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

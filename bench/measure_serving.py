"""A coordinator on the state directory of a long run: its start, and its lists of clients while rounds go on.

    build/release/bin/terse-long-store-bench STATE
    python3 bench/measure_serving.py STATE                # --json for programs; the run goes on by some rounds
    python3 bench/measure_serving.py STATE --connect 0    # nobody is connected, and the run stays as it is

Fresh answers are asked for after the one before has become too old for the coordinator's cache; cached ones at once.
Ends with exit code 1 when a list lacks a client, or when the clients' rounds stop.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

CLIENTS_PAGE = "/api/v1/runs/long/clients"
# The cache keeps an answer for ten times as long as it took to be made, and for half a second at least.
LEAST_PAUSE, PAUSES = 0.6, 12
PATIENCE = 300


def percentiles(values):
    """In milliseconds."""
    ordered = sorted(values)
    return {"p50_ms": 1e3 * statistics.median(ordered), "p99_ms": 1e3 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
            "count": len(ordered)}


class Coordinator:
    """The program, from its start to its end."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [options.bin / "terse-coordinator", "--state", options.state, "--listen", "127.0.0.1:0", "--http",
                   "127.0.0.1:0", "--ready-file", ready]
        began = time.monotonic()
        with open(folder / "coordinator.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > began + PATIENCE:
                sys.exit((folder / "coordinator.log").read_text())
            time.sleep(0.002)
        self.start_s = time.monotonic() - began
        self.start_processor_s = self.processor_s()
        self.addresses = json.loads(ready.read_text())
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.addresses["http"]).netloc, timeout=60)

    def processor_s(self):
        """Of its process so far, in steps of 10 ms."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, page):
        """The JSON of a page, and the seconds that it took to come."""
        began = time.monotonic()
        self.connection.request("GET", page, headers={"Accept-Encoding": "gzip"})
        reply = self.connection.getresponse()
        body = reply.read()
        took = time.monotonic() - began
        if reply.status != 200:
            sys.exit(f"{page}: {reply.status} {body}")
        return json.loads(gzip.decompress(body) if reply.headers["Content-Encoding"] == "gzip" else body), took

    def stop(self):
        self.process.terminate()
        if self.process.wait(PATIENCE) != 0:
            sys.exit((self.folder / "coordinator.log").read_text())


def check_clients(listed, expected):
    names = {client["name"] for client in listed}
    if names != {f"client-{number}" for number in range(expected)}:
        sys.exit(f"the list has {len(names)} clients, not {expected}")


def measure_page(coordinator, requests, fresh):
    times = []
    for _ in range(requests):
        listed, took = coordinator.get(CLIENTS_PAGE)
        check_clients(listed["clients"], coordinator.options.clients)
        times.append(took)
        if fresh:
            time.sleep(max(LEAST_PAUSE, PAUSES * took))
    return times


def measure_tersectl(coordinator, requests):
    """Each call is a process, whose own start is in the time."""
    times = []
    command = [coordinator.options.bin / "tersectl", "--json", "--admin", coordinator.addresses["admin"], "clients"]
    for _ in range(requests):
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        times.append(time.monotonic() - began)
        check_clients(json.loads(done.stdout), coordinator.options.clients)
    return times


class Clients:
    """Scripted clients that take part in the run."""

    def __init__(self, coordinator):
        options = coordinator.options
        command = [options.bin / "terse-bench", "fleet-clients", "--servers", coordinator.addresses["listen"],
                   "--run-file", options.state / "long.toml", "--first", "0", "--count", str(options.connect)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the clients could not be prepared")
        print("", file=self.process.stdin, flush=True)

    def stop(self):
        self.process.kill()
        self.process.wait()


def head(coordinator):
    # The newest answer of the status page may be half a second old.
    return coordinator.get("/api/v1/runs/long")[0]["version"]


def await_version(coordinator, version):
    end = time.monotonic() + PATIENCE
    while int(head(coordinator)) < version:
        if time.monotonic() > end:
            sys.exit(f"no version {version} within {PATIENCE} s")
        time.sleep(LEAST_PAUSE)


def rounds_after(coordinator, version):
    """Seconds from commit to commit."""
    page = coordinator.get(f"/api/v1/runs/long/rounds?first={version}")[0]
    committed = [int(round["committed_us"]) for round in page["rounds"] if round["state"] == "committed"]
    return [(after - before) / 1e6 for before, after in zip(committed, committed[1:])]


def measure_rounds(coordinator, rounds, ask):
    """The rounds of the connected clients while `ask` goes on, and what that returned."""
    begin = int(head(coordinator)) + 1
    asked = ask()
    await_version(coordinator, begin + rounds)
    time.sleep(LEAST_PAUSE)
    return rounds_after(coordinator, begin), asked


def measure_with_clients(coordinator):
    """In turns, so that other work on the machine is in all of the figures."""
    options = coordinator.options
    requests, rounds = -(-options.requests // options.blocks), -(-options.rounds // options.blocks)
    asks = {"rounds_alone": lambda: [],
            "rounds_and_page": lambda: measure_page(coordinator, requests, fresh=True),
            "rounds_and_tersectl": lambda: measure_tersectl(coordinator, requests)}
    found = {name: ([], []) for name in asks}
    for _ in range(options.blocks):
        for name, ask in asks.items():
            for values, more in zip(found[name], measure_rounds(coordinator, rounds, ask)):
                values.extend(more)
    return {name: {"rounds": percentiles(durations), **({"asked": percentiles(asked)} if asked else {})}
            for name, (durations, asked) in found.items()}


def measure(coordinator):
    options = coordinator.options
    figures = {"fresh": percentiles(measure_page(coordinator, options.requests, fresh=True)),
               "cached": percentiles(measure_page(coordinator, options.requests, fresh=False)),
               "tersectl": percentiles(measure_tersectl(coordinator, options.requests))}
    if options.connect == 0:
        return figures
    clients = Clients(coordinator)
    try:
        await_version(coordinator, int(head(coordinator)) + 3)
        return {**figures, **measure_with_clients(coordinator)}
    finally:
        clients.stop()


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=pathlib.Path, help="state directory that terse-long-store-bench made")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--clients", type=int, default=1000, help="that the run has")
    parser.add_argument("--connect", type=int, default=1000, help="clients that take part; all of them, or 0")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200, help="at least, of each kind")
    parser.add_argument("--starts", type=int, default=5, help="with the database in the system's cache")
    parser.add_argument("--blocks", type=int, default=5, help="that requests and rounds are taken in, in turns")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def forget_pages(path):
    """The next start reads the file from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_starts(folder, options):
    """From the program's start until it serves: with the database on the disk alone, and then in the system's cache."""
    starts = []
    forget_pages(options.state / "runs" / "long" / "run.sqlite")
    for _ in range(1 + options.starts):
        coordinator = Coordinator(folder, options)
        starts.append({"s": coordinator.start_s, "processor_s": coordinator.start_processor_s})
        coordinator.stop()
    warm = sorted(starts[1:], key=lambda start: start["s"])
    return {"start_from_disk": starts[0], "start": warm[len(warm) // 2]}


def measure_all(folder, options):
    figures = measure_starts(folder, options)
    coordinator = Coordinator(folder, options)
    try:
        figures.update(measure(coordinator))
        coordinator.stop()
    finally:
        coordinator.process.kill()
    return figures


def main():
    options = read_arguments()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure_all(pathlib.Path(folder), options)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:<22} {json.dumps(figure)}")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Memory of terse-client beside a trainer in Python, and of terse-empty-client, which has nothing but a gRPC stream.

usage: PYTHONPATH=build/release/python /usr/bin/python3 bench/client_memory.py build/release/bin [--files N]

A run of two clients with a model of 1,230 parameters, so that the model counts for nothing. In kB: the peak and the present
resident size, the pages that the process has alone and cannot drop (heap, stacks, relocated and written data), and the pages
of files, which processes share and the kernel can drop; then the page faults so far. --files N lists the N files with most
pages.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))
os.environ["TERSE_BIN"] = str(BIN)

import grid_member
import terse
from fleet import Fleet, end, wait_until

ROUNDS = 1000


def status_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+)(?: kB)?$", text, re.MULTILINE)}


def pages_of_files(pid):
    pages, file = collections.Counter(), ""
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if mapping := re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)", line):
            file = mapping.group(1)
        elif line.startswith("Rss:") and file.startswith("/"):
            pages[pathlib.Path(file).name] += int(line.split()[1])
    return pages


def faults_of(pid):
    """Page faults so far that read nothing from a disk."""
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def show(name, pid, files):
    status = status_of(pid)
    sizes = "".join(f"{status[key]:>10}" for key in ("VmHWM", "VmRSS", "RssAnon", "RssFile"))
    print(f"{name:<20}{sizes}{faults_of(pid):>10}{status['Threads']:>10}")
    for file, kilobytes in pages_of_files(pid).most_common(files):
        print(f"{'':<20}{kilobytes:>40} {file}")


def main():
    files = int(sys.argv[sys.argv.index("--files") + 1]) if "--files" in sys.argv else 0
    print(f"{'kB':<20}" + "".join(f"{title:>10}" for title in ("peak", "resident", "own", "files", "faults", "threads")))
    with Fleet(BIN) as fleet:
        fleet.start_coordinator()
        empty = fleet.start("empty", BIN / "terse-empty-client", fleet.address)
        wait_until(lambda: "open" in fleet.log("empty"), "the empty client's stream opens")
        time.sleep(1)
        run = terse.Run("memory", model=grid_member.make_model(), codec=terse.codecs.sbc(density=0.05), rounds=ROUNDS,
                        clients=2, settings={"rounds": {"quorum": 2}})
        run.create(str(fleet.folder / "run"), admin=fleet.admin)
        members = [fleet.member(name, seed) for name, seed in (("a", 1), ("b", 2))]
        fleet.wait_for_version(ROUNDS // 4)
        children = subprocess.run(["pgrep", "-P", str(members[0].pid)], capture_output=True, text=True, check=True)
        (client,) = children.stdout.split()
        show("terse-client", client, files)
        show("terse-empty-client", empty.pid, files)
        for member in members:
            end(member, 300)


if __name__ == "__main__":
    main()

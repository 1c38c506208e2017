#!/usr/bin/env python3
"""What terse.codecs costs beside the same codecs in C++: terse-bench and Python in turns, on 1,000,000 normal numbers.
Times are the thread's own, as in terse-bench.

usage: PYTHONPATH=build/release/python bench/codecs_in_python.py build/release/bin/terse-bench [TURNS]
"""
import json
import statistics
import subprocess
import sys
import time

import numpy as np

from terse import _codecs, codecs

ELEMENTS, REPETITIONS = 1_000_000, 21


def in_cpp(program):
    """Seconds of Codec::Encode and Codec::AddDecoded by codec: medians of 21."""
    seconds = {}
    for metric, kind in (("encode_mb_s", "encode"), ("decode_mb_s", "add_decoded")):
        done = subprocess.run([program, "codec", "--json", "--only", metric], capture_output=True, text=True, check=True)
        for row in json.loads(done.stdout)["metrics"]:
            if row["name"] == metric:
                seconds[row["setting"], kind] = 4e-6 * ELEMENTS / row["value"]
    return seconds


def median_of(call):
    taken = []
    for _ in range(REPETITIONS):
        begin = time.thread_time()
        call()
        taken.append(time.thread_time() - begin)
    return statistics.median(taken)


def in_python():
    """The same of Python's encode and add_decoded."""
    update = np.random.default_rng(1).standard_normal(ELEMENTS, dtype=np.float32)
    total, seconds = np.zeros_like(update), {}
    for name, _ in _codecs.table():
        codec = codecs.Codec(name, {"threshold": 2.5})  # as terse-bench: defaults, and strom's threshold
        message = codec.encode(update)
        seconds[name, "encode"] = median_of(lambda: codec.encode(update))
        seconds[name, "add_decoded"] = median_of(lambda: codec.add_decoded(message, total))
    return seconds


def main():
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cpp, python = [], []
    for _ in range(turns):
        cpp.append(in_cpp(sys.argv[1]))
        python.append(in_python())
    ratios = {"encode": [], "add_decoded": []}
    print(f"codec                 | encode, C++ ms | Python ms | ratio | add_decoded, C++ ms | Python ms | ratio   ({turns} turns)")
    for name, _ in _codecs.table():
        cells = [f"{name:21}"]
        for kind, listed in ratios.items():
            there, here = (statistics.median(run[name, kind] for run in runs) for runs in (cpp, python))
            listed.append(here / there)
            cells.append(f"{1e3 * there:9.3f} | {1e3 * here:9.3f} | {here / there:5.2f}")
        print(" | ".join(cells))
    for kind, listed in ratios.items():
        print(f"{kind}: median {statistics.median(listed):.2f}, largest {max(listed):.2f}")


if __name__ == "__main__":
    main()

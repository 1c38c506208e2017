"""Prints the LeNet5-Caffe row of SBC's Table II from the summaries of the runs: sbc_table2.py DIR NAME..."""

import json
import pathlib
import sys

# Accuracy and compression as printed in Table II (payload bits as the authors count them).
PAPER = {
    "baseline": (0.9946, 1),
    "fedavg": (0.994, 500),
    "sbc1": (0.994, 2071),
    "sbc2": (0.994, 3491),
    "sbc3": (0.991, 24935),
}
TITLES = {
    "baseline": "Baseline (n=1, dense)",
    "fedavg": "Federated Averaging (n=100, dense)",
    "sbc1": "SBC (1): n=1, p=0.001",
    "sbc2": "SBC (2): n=10, p=0.01",
    "sbc3": "SBC (3): n=100, p=0.01",
}


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    runs = {name: json.loads((folder / name / "summary.json").read_text()) for name in names}
    print("| configuration | accuracy | paper | compression, wire | payload | paper | up a client, wire | overhead p50 | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, run in runs.items():
        paper_accuracy, paper_rate = PAPER[name]
        up = run["wire_bytes_up"] / run["clients"] / 1e3
        print(
            f"| {TITLES[name]} | {run['accuracy']:.4f} | {paper_accuracy} | x{run['compression_up_wire']:.0f} "
            f"| x{run['compression_up_payload']:.0f} | x{paper_rate} | {up:,.1f} kB "
            f"| {run['round_overhead_ms_p50']:.1f} ms | {run['seconds']:.0f} s |"
        )


if __name__ == "__main__":
    main()

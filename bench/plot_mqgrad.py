"""Draws MQGrad's Figures 4 and 5 from a rerun: training loss against time for fixed and for chosen bits, and the bits.

    terse-bench paper mqgrad --data DIR --scale 0.04
    python3 bench/plot_mqgrad.py out/paper/mqgrad

Writes mqgrad.csv (one line a round), .svg and .png, and prints when each method first reached a training loss. Needs
Debian's python3-matplotlib (deploy/packages.sh bench).
"""

import argparse
import csv
import itertools
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from plot_style import FONT, INK, PAPER, quiet, save

FEWEST_BITS = 2
LINK_BYTES_PER_SECOND = 10e6  # of mqgrad_tables.cc
METHODS = {"fix2": ("Fix (2-bit)", "#c8553d"), "fix4": ("Fix (4-bit)", "#e0a63b"), "fix8": ("Fix (8-bit)", "#5b7fb4"),
           "mqgrad": ("MQGrad", "#2f8f6b")}


def link_seconds(row):
    """What the link takes for a client's payload of a round, up and down."""
    return (int(row["payload_bytes_up"]) + int(row["payload_bytes_down"])) / int(row["updates"]) / LINK_BYTES_PER_SECOND


def ends(rounds, compute):
    """The second at which each round ended: as measured, or where each took `compute` seconds and the link's."""
    if compute is None:
        start = int(rounds[0]["opened_us"])
        return [(int(row["committed_us"]) - start) / 1e6 for row in rounds]
    return list(itertools.accumulate(compute + link_seconds(row) for row in rounds))


def read(folder, compute):
    """{method: [(seconds, loss, bits), ...]}, a committed round each."""
    curves = {}
    for path in sorted(folder.glob("cifar-*/rounds.csv")):
        method = re.match(r"cifar-(\w+?)-", path.parent.name)[1]
        if method in curves:
            raise SystemExit(f"{folder} has several runs of cifar-{method} (seeds, lengths or data); leave one of each")
        with open(path, newline="") as file:
            rounds = [row for row in csv.DictReader(file) if row["state"] == "committed"]
        fixed = re.fullmatch(r"fix(\d)", method)
        curves[method] = [(end, float(row["train_loss"]), int(fixed[1]) if fixed else FEWEST_BITS + int(row["choice"]))
                          for end, row in zip(ends(rounds, compute), rounds)]
    if not curves:
        raise SystemExit(f"{folder} has no cifar-METHOD-*/rounds.csv; run: terse-bench paper mqgrad --data DIR")
    return curves


def smoothed(losses, width):
    """Mean of the last `width` rounds, or of fewer at the start."""
    return [sum(losses[max(0, i - width + 1):i + 1]) / min(i + 1, width) for i in range(len(losses))]


def write_csv(path, curves):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "round", "seconds", "train_loss", "bits"])
        for method, points in curves.items():
            for number, (seconds, loss, bits) in enumerate(points, 1):
                writer.writerow([method, number, f"{seconds:.3f}", f"{loss:.6g}", bits])


def draw(path, curves, width):
    plt.rcParams.update(FONT)
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.4, 6.4), sharex=True, height_ratios=[3, 1])
    figure.patch.set_facecolor(PAPER)
    for method, points in curves.items():
        title, colour = METHODS[method]
        minutes = [seconds / 60 for seconds, _, _ in points]
        top.plot(minutes, smoothed([loss for _, loss, _ in points], width), color=colour, label=title, linewidth=1.6)
        bottom.step(minutes, [bits for _, _, bits in points], color=colour, where="pre", linewidth=1.2)
    top.set_ylabel(f"training loss, mean of {width} rounds", color=INK)
    top.legend(frameon=False)
    bottom.set_ylabel("bits", color=INK)
    bottom.set_yticks(range(FEWEST_BITS, 9, 2))
    bottom.set_xlabel("minutes", color=INK)
    for axes in (top, bottom):
        quiet(axes)
    figure.tight_layout()
    save(figure, path)


def print_times(curves, width):
    means = {method: smoothed([loss for _, loss, _ in points], width) for method, points in curves.items()}
    start = max(losses[0] for losses in means.values())
    lowest = min(min(losses) for losses in means.values())
    targets = [start - share * (start - lowest) for share in (0.5, 0.75, 0.9, 1.0)]
    print("| minutes until the loss was | " + " | ".join(f"{target:.3f}" for target in targets) + " | mean bits |")
    print("|---" * (len(targets) + 2) + "|")
    for method, points in curves.items():
        times = [next((f"{points[i][0] / 60:.1f}" for i, loss in enumerate(means[method]) if loss <= target), "-")
                 for target in targets]
        bits = sum(bits for _, _, bits in points) / len(points)
        print(f"| {METHODS[method][0]} | " + " | ".join(times) + f" | {bits:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=pathlib.Path, help="folder of the runs: OUT/mqgrad")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/images"))
    parser.add_argument("--compute", type=float, metavar="SECONDS",
                        help="of a round beside the link, for rows that ran beside other work: in place of the measured time")
    parser.add_argument("--window", type=int, default=10, help="rounds of the mean that is drawn")
    options = parser.parse_args()
    curves = read(options.runs, options.compute)
    path = options.out / "mqgrad.csv"
    write_csv(path, curves)
    draw(path, curves, options.window)
    print_times(curves, options.window)
    print(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()

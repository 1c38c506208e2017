"""Draws what `terse-bench distortion` measured: plot_distortion.py DIR [--iteration N] [--out docs/images]

Reads DIR/distortion.csv and writes distortion.svg and distortion.png. Needs Debian's
python3-matplotlib (deploy/packages.sh bench).
"""

import argparse
import csv
import collections
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from plot_style import FAINT, FONT, INK, PAPER, save

GRID = "#e4e5e2"

WIDE = {"sbc_or_stc"}  # lies on the better of two others: a band beneath them

# Curves by family: (curve, label, colour, marker). Curves that lie on one another share a row.
FAMILIES = {
    "one magnitude": [
        ("sbc_or_stc", "sbc_or_stc", "#a9dcc6", "o"),
        ("sbc", "sbc", "#0b6e4f", "o"),
        ("stc", "stc", "#2fa37c", "s"),
        ("strom", "strom", "#1b4965", "v"),
        ("adacomp", "adacomp", "#5fa8d3", "P"),
    ],
    "chosen values": [
        ("top_k", "top_k, dgc", "#c8553d", "o"),
        ("sparseloco", "sparseloco, 2 bits", "#8f2d56", "D"),
        ("random_sparse simple", "random_sparse", "#e9a178", "s"),
    ],
    "unbiased": [
        ("qsgd simple", "qsgd", "#6d597a", "o"),
        ("qsgd elias", "qsgd, elias", "#a77fb5", "s"),
        ("mcgq simple", "mcgq", "#b5838d", "v"),
        ("mcgq positions", "mcgq, positions", "#e0a3ad", "^"),
        ("low_precision", "low_precision", "#355070", "D"),
        ("low_precision_sparse", "low_precision_sparse", "#7d93b2", "X"),
        ("terngrad", "terngrad", "#d4a017", "*"),
    ],
    "every element": [
        ("one_bit", "one_bit, ef_signsgd", "#111111", "P"),
        ("signsgd", "signsgd, signum", "#777777", "X"),
        ("bf16", "bf16", "#9a6b00", "h"),
        ("fp16", "fp16", "#5c4300", "H"),
    ],
}


def read(path):
    """{update: {curve: [(bits, error), ...]}}"""
    updates = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, newline="") as rows:
        for row in csv.DictReader(rows):
            point = (float(row["bits_per_parameter"]), float(row["relative_squared_error"]))
            updates[row["update"]][row["codec"]].append(point)
    return updates


def style(axes):
    axes.set_facecolor(PAPER)
    axes.grid(True, which="major", color=GRID, linewidth=0.8)
    axes.tick_params(which="both", colors=FAINT, labelcolor=INK, labelsize=9, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()


def draw(axes, curves, to_point, x_limits, y_limits, labels):
    for family in FAMILIES.values():
        for curve, label, colour, marker in family:
            points = [to_point(*point) for point in sorted(curves.get(curve, []))]
            points = [(x, y) for x, y in points if x_limits[0] <= x <= x_limits[1] and y_limits[0] <= y <= y_limits[1]]
            if not points:
                continue
            width, size = (6, 10) if curve in WIDE else (1.7, 9 if marker == "*" else 6)
            line = axes.plot(*zip(*points), color=colour, marker=marker, markersize=size, linewidth=width,
                             markeredgecolor=PAPER, markeredgewidth=0.7, clip_on=False, zorder=3)
            labels.setdefault(label, line[0])
    axes.set_xlim(*x_limits)
    axes.set_ylim(*y_limits)


def draw_bound(axes, to_point, x_limits, y_limits):
    """D(R) = 2^(-2 R): no code for independent Gaussian numbers does better."""
    bits = [x_limits[0] * (x_limits[1] / x_limits[0]) ** (i / 400) for i in range(401)]
    points = [to_point(b, 4.0**-b) for b in bits]
    points = [(x, y) for x, y in points if y_limits[0] <= y <= y_limits[1]]
    axes.plot(*zip(*points), color=FAINT, linestyle=(0, (4, 3)), linewidth=1.3, zorder=2)
    return points


def legend(figure, labels):
    left = 0.07
    for (name, family), width in zip(FAMILIES.items(), (0.13, 0.16, 0.32, 0.2)):
        handles = [labels[label] for _, label, _, _ in family if label in labels]
        names = [label for _, label, _, _ in family if label in labels]
        box = figure.legend(handles, names, title=name, loc="upper left", bbox_to_anchor=(left, 0.15), frameon=False,
                            fontsize=9, ncol=2 if len(names) > 5 else 1, labelcolor=INK, handlelength=2.2,
                            columnspacing=1.6, alignment="left")
        box.get_title().set_color(FAINT)
        box.get_title().set_fontsize(9)
        figure.add_artist(box)
        left += width + 0.04


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path, help="where distortion.csv is")
    parser.add_argument("--iteration", type=int, default=50, help="of the real updates (default: 50)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/images"))
    options = parser.parse_args()
    updates = read(options.directory / "distortion.csv")
    panels = [("Gaussian numbers", "gaussian"),
              (f"LeNet5 on MNIST, updates of iteration {options.iteration}", f"iteration {options.iteration}")]
    missing = [name for _, name in panels if name not in updates]
    if missing:
        parser.error(f"{options.directory}/distortion.csv has no '{missing[0]}'; it has {', '.join(updates)}")

    plt.rcParams.update(FONT)
    figure, axes = plt.subplots(2, 2, figsize=(12, 11.2), sharex="row", sharey="row")
    figure.patch.set_facecolor(PAPER)
    figure.subplots_adjust(left=0.075, right=0.975, top=0.885, bottom=0.215, hspace=0.24, wspace=0.08)
    lost = lambda bits, error: (bits, error)
    kept = lambda bits, error: (bits, 1 - error)
    labels = {}
    for column, (title, name) in enumerate(panels):
        for row, (to_point, x_limits, y_limits) in enumerate(
                [(lost, (0.1, 32), (1e-8, 30)), (kept, (0.003, 2.2), (0.0008, 1.0))]):
            style(axes[row][column])
            draw(axes[row][column], updates[name], to_point, x_limits, y_limits, labels)
            if name == "gaussian":
                points = draw_bound(axes[row][column], to_point, x_limits, y_limits)
                x, y = points[len(points) // 3] if row else points[-1]
                axes[row][column].annotate("Shannon's bound", (x, y), color=FAINT, fontsize=9,
                                           xytext=(-8, 6) if row else (-8, 4), textcoords="offset points", ha="right")
        axes[0][column].set_title(title, loc="left", fontsize=11.5, color=INK, pad=10)
        for row in axes:
            row[column].set_xlabel("bits per parameter", fontsize=10, color=INK)
    axes[0][0].set_ylabel("lost: squared error / energy of the update", fontsize=10, color=INK)
    axes[1][0].set_ylabel("kept: 1 - squared error / energy", fontsize=10, color=INK)
    axes[1][0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    figure.text(0.075, 0.962, "What a codec loses for the bits it takes", fontsize=17, weight="bold", color=INK)
    figure.text(0.075, 0.937, "Above: all codecs, lower is better. Below: the first two bits, where sparse codecs "
                "work; higher is better. Feedback brings later what one message loses.", fontsize=10, color=FAINT)
    legend(figure, labels)
    options.out.mkdir(parents=True, exist_ok=True)
    save(figure, options.out / "distortion")


if __name__ == "__main__":
    main()

"""Draws the curves of the runs of a paper table: test error or perplexity against rounds or bytes, one row of pictures a model.

    for seed in 1 2 3; do terse-bench paper early --data DIR --scale 0.1 --seed $seed; done
    python3 bench/plot_curves.py early out/paper/early

Lines are means over the seeds, with the smallest and the largest value as a band. Bytes are payload, of one client, up to the end of a
round. Writes TABLE.csv (one line for each evaluated round of each run), .svg and .png. Needs Debian's python3-matplotlib
(deploy/packages.sh bench).
"""

import argparse
import csv
import dataclasses
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullLocator

from plot_style import FONT, INK, PAPER, quiet, save

METRIC = "error_or_perplexity"
AXES = {"round": "rounds", "kilobytes_up": "kB up a client", "kilobytes_both": "kB up and down a client"}


@dataclasses.dataclass
class Table:
    axes: tuple  # of AXES, from left to right
    models: dict  # title and metric
    methods: dict  # title and colour


TABLES = {
    "early": Table(("round", "kilobytes_up"),
                   {"lenet5": ("LeNet5, equal shards", "test error"), "dirichlet": ("LeNet5, Dirichlet 0.5", "test error"),
                    "two": ("LeNet5, two classes a client", "test error"), "charlstm": ("CharLSTM", "perplexity"),
                    "small": ("transformer", "perplexity")},
                   {"dense": ("dense", "#8b9299"), "mean": ("SBC 1%, mean", "#c8553d"), "mean4": ("SBC 4%, mean", "#e0a63b"),
                    "imputed": ("SBC 1%, imputed mean", "#5b7fb4"), "imputed2": ("SBC 2%, imputed mean", "#2f8f6b"),
                    "imputed38": ("SBC 3.8%, imputed mean", "#b8719c"), "imputed4": ("SBC 4%, imputed mean", "#3a9fb0"),
                    "adaptive": ("SBC 1%, imputed mean, adaptive decay", "#7c5aa6"),
                    "adaptive2": ("SBC 2%, imputed mean, adaptive decay", "#1f5d4c"),
                    "first": ("SBC 1%, at first 25%, imputed mean", "#23313f")}),
    "sparseloco": Table(("kilobytes_up", "kilobytes_both"),
                        {"transformer": ("transformer", "perplexity"), "small": ("small transformer", "perplexity")},
                        {"diloco": ("DiLoCo, dense", "#8b9299"), "two_bits": ("2 bits, error feedback", "#e0a63b"),
                         "sparseloco": ("SparseLoCo as published", "#c8553d"), "auto": ("SparseLoCo, positions auto", "#5b7fb4"),
                         "shared": ("SparseLoCo, positions shared", "#7c5aa6"),
                         "auto_imputed": ("SparseLoCo, positions auto, imputed mean", "#3a9fb0"),
                         "sbc": ("SBC of the same density", "#2f8f6b"),
                         "sbc_imputed": ("SBC of the same density, imputed mean", "#1f5d4c")}),
}


def columns(table):
    """Of the CSV file, in front of the metric."""
    return list(dict.fromkeys(("round", *table.axes)))


def read_csv(path, table):
    """What write_csv wrote: {(model, method): {seed: [{column: value}, ...]}}."""
    found = {}
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        missing = {*columns(table), METRIC} - set(reader.fieldnames or [])
        if missing:
            raise SystemExit(f"{path} is not the CSV of this table: it has no column {', '.join(sorted(missing))}")
        for row in reader:
            point = {column: float(row[column]) for column in [*columns(table), METRIC]}
            found.setdefault((row["model"], row["method"]), {}).setdefault(int(row["seed"]), []).append(point)
    return found


def read_run(path):
    """The evaluated rounds of a rounds.csv."""
    points, up, down = [], 0, 0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["state"] != "committed":
                continue
            up += int(row["payload_bytes_up"]) / int(row["updates"])
            down += int(row["payload_bytes_down"]) / int(row["updates"])
            if row["perplexity"] or row["accuracy"]:
                metric = float(row["perplexity"]) if row["perplexity"] else 1 - float(row["accuracy"])
                points.append({"round": int(row["id"]), "kilobytes_up": up / 1000, "kilobytes_both": (up + down) / 1000,
                               METRIC: metric})
    return points


def read(folder, table, also):
    """As read_csv, of the runs in a folder and of the earlier ones in `also`, in the order of the table."""
    found = read_csv(also, table) if also else {}
    lengths = {}
    for path in sorted(folder.glob("*-seed*/rounds.csv")):
        name = re.fullmatch(r"(\w+)-(\w+)-(\d+)-seed(\d+)", path.parent.name)
        if not name:  # of rendered digits, in place of the paper's data
            continue
        model, method, iterations, seed = name.groups()
        if lengths.setdefault((model, method), iterations) != iterations:
            raise SystemExit(f"{folder} has runs of {model}-{method} of {lengths[model, method]} and of {iterations} iterations; "
                             "move those of one length away")
        found.setdefault((model, method), {})[int(seed)] = read_run(path)
    order = [(model, method) for model in table.models for method in table.methods]
    curves = {key: found[key] for key in order if key in found}
    if not curves:
        raise SystemExit(f"{folder} has no MODEL-METHOD-*-seed*/rounds.csv of this table; run: terse-bench paper TABLE --data DIR")
    return curves


def write_csv(path, table, curves):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "method", "seed", *columns(table), METRIC])
        for (model, method), seeds in curves.items():
            for seed, points in sorted(seeds.items()):
                for point in points:
                    cells = [f"{point[c]:.0f}" if c == "round" else f"{point[c]:.3f}" for c in columns(table)]
                    writer.writerow([model, method, seed, *cells, f"{point[METRIC]:.6g}"])


def draw_model(pictures, table, model, curves):
    for method, (title, colour) in table.methods.items():
        runs = list(curves.get((model, method), {}).values())
        if not runs:
            continue
        length = min(map(len, runs))
        values = [[run[i][METRIC] for run in runs] for i in range(length)]
        for picture, axis in zip(pictures, table.axes):
            across = [sum(run[i][axis] for run in runs) / len(runs) for i in range(length)]
            picture.plot(across, [sum(v) / len(v) for v in values], color=colour, label=title, linewidth=1.6)
            picture.fill_between(across, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15,
                                 linewidth=0)
    for picture, axis in zip(pictures, table.axes):
        quiet(picture)
        if axis != "round":
            picture.set_xscale("log")
            picture.xaxis.set_major_formatter("{x:g}")
        picture.set_yscale("log")
        picture.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        picture.yaxis.set_major_formatter("{x:g}")
        picture.yaxis.set_minor_locator(NullLocator())
    pictures[0].set_ylabel("\n".join(table.models[model]), color=INK)


def draw(path, table, curves):
    plt.rcParams.update(FONT)
    models = list(dict.fromkeys(model for model, _ in curves))
    figure, grid = plt.subplots(len(models), 2, figsize=(9, 2.9 * len(models) + 0.6), squeeze=False)
    figure.patch.set_facecolor(PAPER)
    for pictures, model in zip(grid, models):
        draw_model(pictures, table, model, curves)
    lines = {line.get_label(): line for pictures in grid for line in pictures[0].lines}
    shown = [lines[title] for title, _ in table.methods.values() if title in lines]
    figure.legend(handles=shown, frameon=False, fontsize=8, loc="upper center", ncol=3)
    for picture, axis in zip(grid[-1], table.axes):
        picture.set_xlabel(AXES[axis], color=INK)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 / figure.get_figheight()))  # below the legend
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("runs", type=pathlib.Path, help="folder of the runs: OUT/TABLE")
    parser.add_argument("--also", type=pathlib.Path, help="TABLE.csv of other runs, which those of the folder join")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/images"))
    options = parser.parse_args()
    table = TABLES[options.table]
    curves = read(options.runs, table, options.also)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.table}.csv"
    write_csv(path, table, curves)
    draw(path, table, curves)
    print(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()

"""Draws how fast short runs get on: test error or perplexity against rounds and bytes, one row of pictures a model.

    for seed in 1 2 3; do terse-bench paper early --data DIR --scale 0.1 --seed $seed; done
    python3 bench/plot_early.py out/paper/early

Lines are means over the seeds, with the smallest and the largest value as a band. Writes early.csv (one line for each
evaluated round of each run), .svg and .png. Needs Debian's python3-matplotlib (deploy/packages.sh bench).
"""

import argparse
import csv
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullLocator

from plot_style import FONT, INK, PAPER, quiet, save

METHODS = {"dense": ("dense", "#8b9299"), "mean": ("SBC 1%, mean", "#c8553d"), "mean4": ("SBC 4%, mean", "#e0a63b"),
           "imputed": ("SBC 1%, imputed mean", "#5b7fb4"), "imputed2": ("SBC 2%, imputed mean", "#2f8f6b"),
           "imputed38": ("SBC 3.8%, imputed mean", "#b8719c"), "imputed4": ("SBC 4%, imputed mean", "#3a9fb0"),
           "adaptive": ("SBC 1%, imputed mean, adaptive decay", "#7c5aa6"),
           "adaptive2": ("SBC 2%, imputed mean, adaptive decay", "#1f5d4c")}
MODELS = {"lenet5": "LeNet5, equal shards", "dirichlet": "LeNet5, Dirichlet 0.5", "two": "LeNet5, two classes a client",
          "charlstm": "CharLSTM", "small": "transformer"}


def read_csv(path):
    """What write_csv wrote: {(model, method): {seed: [(round, kilobytes up a client, error or perplexity), ...]}}."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            point = (int(row["round"]), float(row["kilobytes_up"]), float(row["error_or_perplexity"]))
            found.setdefault((row["model"], row["method"]), {}).setdefault(int(row["seed"]), []).append(point)
    return found


def read(folder, also):
    """As read_csv, of the runs in a folder and of the earlier ones in `also`, in the order of MODELS and METHODS."""
    found = read_csv(also) if also else {}
    for path in sorted(folder.glob("*-seed*/rounds.csv")):
        model, method, seed = re.fullmatch(r"(\w+)-(\w+)-\d+-seed(\d+)", path.parent.name).groups()
        points, sent = [], 0
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if row["state"] != "committed":
                    continue
                sent += int(row["payload_bytes_up"]) / int(row["updates"])
                if row["perplexity"]:
                    points.append((int(row["id"]), sent / 1000, float(row["perplexity"])))
                elif row["accuracy"]:
                    points.append((int(row["id"]), sent / 1000, 1 - float(row["accuracy"])))
        found.setdefault((model, method), {})[int(seed)] = points
    curves = {(model, method): found[model, method] for model in MODELS for method in METHODS if (model, method) in found}
    if not curves:
        raise SystemExit(f"{folder} has no MODEL-METHOD-*-seed*/rounds.csv; run: terse-bench paper early --data DIR")
    return curves


def write_csv(path, curves):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "method", "seed", "round", "kilobytes_up", "error_or_perplexity"])
        for (model, method), seeds in curves.items():
            for seed, points in sorted(seeds.items()):
                for number, sent, metric in points:
                    writer.writerow([model, method, seed, number, f"{sent:.3f}", f"{metric:.6g}"])


def draw_model(axes, model, curves):
    rounds, kilobytes = axes
    for method, (title, colour) in METHODS.items():
        runs = list(curves.get((model, method), {}).values())
        if not runs:
            continue
        for at, picture in ((0, rounds), (1, kilobytes)):
            across = [sum(run[i][at] for run in runs) / len(runs) for i in range(min(map(len, runs)))]
            values = [[run[i][2] for run in runs] for i in range(len(across))]
            picture.plot(across, [sum(v) / len(v) for v in values], color=colour, label=title, linewidth=1.6)
            picture.fill_between(across, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15,
                                 linewidth=0)
    kilobytes.set_xscale("log")
    kilobytes.xaxis.set_major_formatter("{x:g}")
    for picture in axes:
        quiet(picture)
        picture.set_yscale("log")
        picture.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        picture.yaxis.set_major_formatter("{x:g}")
        picture.yaxis.set_minor_locator(NullLocator())
    name = "perplexity" if model in ("charlstm", "small") else "test error"
    rounds.set_ylabel(f"{MODELS[model]}\n{name}", color=INK)


def draw(path, curves):
    plt.rcParams.update(FONT)
    models = [model for model in MODELS if any(key[0] == model for key in curves)]
    figure, grid = plt.subplots(len(models), 2, figsize=(9, 2.9 * len(models)), squeeze=False)
    figure.patch.set_facecolor(PAPER)
    for axes, model in zip(grid, models):
        draw_model(axes, model, curves)
    lines = {line.get_label(): line for axes, _ in grid for line in axes.lines}
    shown = [lines[title] for title, _ in METHODS.values() if title in lines]
    figure.legend(handles=shown, frameon=False, fontsize=8, loc="upper center", ncol=3)
    grid[-1][0].set_xlabel("rounds", color=INK)
    grid[-1][1].set_xlabel("kB up a client", color=INK)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.6 / figure.get_figheight()))  # below the legend's three lines
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=pathlib.Path, help="folder of the runs: OUT/early")
    parser.add_argument("--also", type=pathlib.Path, help="early.csv of other runs, which those of the folder join")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/images"))
    options = parser.parse_args()
    curves = read(options.runs, options.also)
    path = options.out / "early.csv"
    write_csv(path, curves)
    draw(path, curves)
    print(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()

"""Draws Figure 3 of Sparse Binary Compression from a rerun of it.

    terse-bench paper sbc-fig3 --data DIR --only lenet5 --scale 0.25 --json > grid.json
    python3 bench/plot_sparsity.py grid.json

Writes sparsity-MODEL.csv, .svg and .png: the test error (or perplexity) of every pair of a temporal and a gradient
sparsity, and the compression on the wire. Needs Debian's python3-matplotlib (deploy/packages.sh bench).
"""

import argparse
import csv
import json
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, LogNorm

from plot_style import FAINT, FONT, INK, PAPER, save

COLUMNS = ["local_steps", "density", "accuracy", "perplexity", "compression_payload", "compression_wire"]


def read(path):
    """{model: [row, ...]} with the keys of COLUMNS and the iterations in each row."""
    models = {}
    try:
        rows = json.loads(path.read_text())["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path} is no output of terse-bench paper sbc-fig3 --json: {error}") from error
    for row in rows:
        pair = re.fullmatch(r"n(\d+)_p([0-9.]+)", row["method"])
        if pair is None:
            raise SystemExit(f"{path}: '{row['method']}' is no method of sbc-fig3")
        values = {"local_steps": int(pair[1]), "density": float(pair[2]), "iterations": row["iterations"]}
        values.update((key, row[key]) for key in COLUMNS[2:])
        models.setdefault(row["model"], []).append(values)
    return models


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
                         for row in rows)


def metric(row):
    """What grows when a model is worse."""
    return row["perplexity"] if row["accuracy"] is None else 100 * (1 - row["accuracy"])


def rate(value):
    return f"×{value:,.0f}" if value >= 10 else f"×{value:.1f}"


def draw(path, model, rows):
    steps = sorted({row["local_steps"] for row in rows})
    densities = sorted({row["density"] for row in rows}, reverse=True)
    cells = {(row["local_steps"], row["density"]): row for row in rows}
    grid = [[metric(cells[n, p]) if (n, p) in cells else float("nan") for p in densities] for n in steps]
    plt.rcParams.update(FONT)
    figure, axes = plt.subplots(figsize=(7.4, 5.8))
    figure.patch.set_facecolor(PAPER)
    colours = LinearSegmentedColormap.from_list("error", ["#e6f2ec", "#8cc5ad", "#e9c27a", "#c8553d"])
    axes.imshow(grid, cmap=colours, norm=LogNorm(), aspect="auto")
    for (n, p), row in cells.items():
        text = f"{metric(row):.2f}" + ("" if row["accuracy"] is None else "%")
        x, y = densities.index(p), steps.index(n)
        axes.text(x, y - 0.1, text, ha="center", va="center", fontsize=12, color=INK)
        axes.text(x, y + 0.24, rate(row["compression_wire"]), ha="center", va="center", fontsize=8.5, color=INK)
    axes.set_xticks(range(len(densities)), [f"{p:g}" for p in densities])
    axes.set_yticks(range(len(steps)), [str(n) for n in steps])
    axes.set_xlabel("gradient sparsity: density p of what is sent", color=INK)
    axes.set_ylabel("temporal sparsity: local steps n in a round", color=INK)
    axes.tick_params(colors=FAINT, labelcolor=INK, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    name = "perplexity" if rows[0]["accuracy"] is None else "test error"
    iterations = max(row["iterations"] for row in rows)
    axes.set_title(f"{model}: {name} after {iterations:,} iterations and compression on the wire", fontsize=11,
                   color=INK, pad=12)
    figure.tight_layout()
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report", type=pathlib.Path, help="what terse-bench paper sbc-fig3 --json printed")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/images"))
    options = parser.parse_args()
    for model, rows in read(options.report).items():
        path = options.out / f"sparsity-{model}.csv"
        write_csv(path, rows)
        draw(path, model, rows)
        print(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How many rounds and bytes the rows of a table need to get to a test error or a perplexity.

  reach.py docs/images/early.csv lenet5=0.05,0.03 charlstm=10,8 small=12,10

Reads a file that plot_curves.py wrote. Prints a Markdown table: for each level the evaluated round that is the first at or below it, and
the payload up a client until its end, as means of the seeds that get there. "2 of 3" says that not all do, "-" that none does.
"""
import csv
import sys


def read(path):
    """{model: {method: {seed: [(round, kilobytes up, error or perplexity), ...]}}}"""
    runs = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            seeds = runs.setdefault(row["model"], {}).setdefault(row["method"], {})
            point = int(row["round"]), float(row["kilobytes_up"]), float(row["error_or_perplexity"])
            seeds.setdefault(row["seed"], []).append(point)
    return runs


def cell(seeds, level):
    first = [next((point for point in points if point[2] <= level), None) for points in seeds.values()]
    there = [point for point in first if point]
    if not there:
        return "-"
    rounds, kilobytes = (sum(point[i] for point in there) / len(there) for i in (0, 1))
    some = "" if len(there) == len(first) else f" ({len(there)} of {len(first)})"
    return f"{rounds:.0f} rounds, {kilobytes:,.0f} kB{some}"


def table(model, methods, levels):
    lines = [f"| {model} | " + " | ".join(f"to {level:g}" for level in levels) + " | seeds |", "|---" * (len(levels) + 2) + "|"]
    for method, seeds in methods.items():
        lines.append(f"| {method} | " + " | ".join(cell(seeds, level) for level in levels) + f" | {len(seeds)} |")
    return "\n".join(lines)


def main():
    if len(sys.argv) < 3 or not all("=" in argument for argument in sys.argv[2:]):
        sys.exit(__doc__.strip())
    try:
        runs = read(sys.argv[1])
    except (OSError, KeyError) as error:
        sys.exit(f"{sys.argv[1]} is no file that plot_curves.py wrote: {error}")
    tables = []
    for argument in sys.argv[2:]:
        model, levels = argument.split("=", 1)
        if model not in runs:
            sys.exit(f"{sys.argv[1]} has no model {model}; it has: {', '.join(runs)}")
        try:
            tables.append(table(model, runs[model], [float(level) for level in levels.split(",")]))
        except ValueError:
            sys.exit(f"{argument}: give numbers, as {model}=0.05,0.03")
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()

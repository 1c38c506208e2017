"""Mean and spread over seeds of the controller joint against a grid of fixed local steps and densities.

    terse-bench paper joint --data DIR --only lenet5 --seed 1 --json > 1.json      # and further seeds
    python3 bench/summarize_joint.py 1.json 2.json 3.json

Prints a Markdown table a model: the best fixed pair by the means over the seeds, and joint. In every seed joint's
budget is a share of what that seed's best fixed pair sent.
"""

import argparse
import json
import pathlib
import statistics

TOLERANCE = {"accuracy": lambda best: best - 0.003, "perplexity": lambda best: best * 1.02}


def read(path):
    try:
        rows = json.loads(path.read_text())["rows"]
        return {(row["model"], row["method"]): row for row in rows if "payload_bytes_up" in row}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path} is no output of terse-bench paper joint --json: {error}") from error


def text(values, form):
    mean = format(statistics.mean(values), form)
    return mean if len(values) < 2 else f"{mean} ± {format(statistics.stdev(values), form)}"


def summarize(model, seeds):
    """Markdown of one model; `seeds` has a {method: row} for each seed."""
    methods = set.intersection(*(set(seed) for seed in seeds))
    if "joint" not in methods or len(methods) < 2:
        raise SystemExit(f"{model}: joint and at least one fixed pair must be in every file")
    metric = "accuracy" if seeds[0]["joint"]["perplexity"] is None else "perplexity"

    def of(method, key):
        return [seed[method][key] for seed in seeds]

    grid = sorted(methods - {"joint"})
    finite = [m for m in grid if all(value is not None for value in of(m, metric))]
    means = {m: statistics.mean(of(m, metric)) for m in finite}
    best_mean = max(means.values()) if metric == "accuracy" else min(means.values())
    target = TOLERANCE[metric](best_mean)
    reach = [m for m in finite if (means[m] >= target if metric == "accuracy" else means[m] <= target)]
    best = min(reach, key=lambda m: statistics.mean(of(m, "payload_bytes_up")))
    print(f"{model}, {len(seeds)} seeds, target {target:.4f}\n")
    print(f"| method | {metric} | up, payload, KB | wire, KB | payload, against the best fixed pair |")
    print("|---|---|---|---|---|")
    for method in (best, "joint"):
        payload, wire = of(method, "payload_bytes_up"), of(method, "wire_bytes_up")
        cells = [text(of(method, metric), ".4f"), text([bytes_ / 1e3 for bytes_ in payload], ".1f"),
                 text([bytes_ / 1e3 for bytes_ in wire], ".1f"),
                 text([a / b for a, b in zip(payload, of(best, "payload_bytes_up"))], ".2f")]
        print(f"| {method} | {' | '.join(cells)} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="outputs of paper joint --json, one a seed")
    seeds = [read(path) for path in parser.parse_args().files]
    for model in sorted({model for seed in seeds for model, _ in seed}):
        of_model = [{method: row for (name, method), row in seed.items() if name == model} for seed in seeds]
        summarize(model, [seed for seed in of_model if seed])


if __name__ == "__main__":
    main()

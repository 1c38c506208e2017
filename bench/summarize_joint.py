"""Mean and spread over seeds of the controller joint, in one row or several, against a grid of fixed local steps and densities.

    terse-bench paper joint --data DIR --only lenet5 --seed 1 --json > 1.json      # and further seeds
    python3 bench/summarize_joint.py 1.json 2.json 3.json

Prints a Markdown table a model: the best fixed pair by the means over the seeds, and the rows of joint. In every seed
their budgets are shares of what that seed's best fixed pair sent.
"""

import argparse
import json
import pathlib
import statistics


def read(path):
    try:
        rows = json.loads(path.read_text())["rows"]
        return {(row["model"], row["method"]): row for row in rows if "payload_bytes_up" in row}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path} is no output of terse-bench paper joint --json: {error}") from error


def text(values, form):
    mean = format(statistics.mean(values), form)
    return mean if len(values) < 2 else f"{mean} ± {format(statistics.stdev(values), form)}"


def best_pair(means, payloads, tolerance, larger_is_better):
    """The target, and of the pairs that reach it the one with the fewest bytes; both arguments map pairs to means."""
    if larger_is_better:
        target = max(means.values()) - tolerance
    else:
        target = min(means.values()) * (1 + tolerance)
    reach = [pair for pair, mean in means.items() if (mean >= target if larger_is_better else mean <= target)]
    return target, min(reach, key=payloads.get)


def summarize(model, seeds):
    """Markdown of one model; `seeds` has a {method: row} for each seed."""
    methods = set.intersection(*(set(seed) for seed in seeds))
    joints = sorted(m for m in methods if m.startswith("joint"))
    if not joints:
        raise SystemExit(f"{model}: a row of joint must be in every file")
    first = seeds[0][joints[0]]
    metric = "accuracy" if first["perplexity"] is None else "perplexity"

    def of(method, key):
        return [seed[method][key] for seed in seeds]

    def mean(method, key):
        return statistics.mean(of(method, key))

    # A pair that did not converge has no metric.
    pairs = [m for m in sorted(methods.difference(joints)) if None not in of(m, metric)]
    if not pairs or any(None in of(m, metric) for m in joints):
        raise SystemExit(f"{model}: joint and at least one fixed pair must have converged in every file")
    means = {m: mean(m, metric) for m in pairs}
    payloads = {m: mean(m, "payload_bytes_up") for m in pairs}
    target, best = best_pair(means, payloads, first["tolerance"], metric == "accuracy")
    print(f"{model}, {len(seeds)} seeds, {len(pairs)} fixed pairs; target {target:.4f}.")
    for joint in joints:
        reached = sum(of(joint, "reaches_target"))
        print(f"{joint} reaches its seed's target in {reached} of {len(seeds)}.")
    print(f"\n| method | {metric} | up, payload, KB | wire, KB | payload, against the best fixed pair |")
    print("|---|---|---|---|---|")
    for method in [best, *joints]:
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

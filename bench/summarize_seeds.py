#!/usr/bin/env python3
"""Mean and spread of the rows of `terse-bench paper TABLE --json` over several seeds.

  summarize_seeds.py sparseloco-1.json sparseloco-2.json sparseloco-3.json

Prints a Markdown table for each model: every figure is the mean of the files, and in brackets the smallest and the largest one. A
row that a file does not have is left out of its mean; the last column says how many files have it.
"""
import json
import sys

FIGURES = (("accuracy", "accuracy", "%.4f", 1), ("perplexity", "perplexity", "%.3f", 1), ("training loss", "train_loss", "%.4f", 1),
           ("up, payload, MB", "payload_bytes_up", "%.3f", 1e6), ("down", "payload_bytes_down", "%.3f", 1e6),
           ("bits up an element", "bits_an_element", "%.3f", 1))


def rows_of(paths):
    """{(model, method): rows}, in the order of the first file that has them."""
    rows = {}
    for path in paths:
        with open(path) as file:
            for row in json.load(file)["rows"]:
                rows.setdefault((row["model"], row["method"]), []).append(row)
    return rows


def figure(rows, key, form, unit):
    values = [row[key] / unit for row in rows if row.get(key) is not None]
    if not values:
        return "-"
    text = form % (sum(values) / len(values))
    low, high = form % min(values), form % max(values)
    return text if low == high else f"{text} ({low} to {high})"


def table(model, rows):
    own = {method: found for (of, method), found in rows.items() if of == model}
    shown = [column for column in FIGURES if any(row.get(column[1]) is not None for found in own.values() for row in found)]
    lines = [model, "", "| method | " + " | ".join(title for title, *_ in shown) + " | seeds |", "|---" * (len(shown) + 2) + "|"]
    for method, found in own.items():
        cells = [figure(found, *rest) for _, *rest in shown]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {len(found)} |")
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    rows = rows_of(sys.argv[1:])
    print("\n\n".join(table(model, rows) for model in dict.fromkeys(model for model, _ in rows)))


if __name__ == "__main__":
    main()

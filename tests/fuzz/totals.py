#!/usr/bin/env python3
"""What all fuzzing campaigns did together: totals.json, and the table in README.md. For campaign.sh.

  totals.py next TOTALS TARGETS GOAL REGEX COUNT   the COUNT targets with the fewest executions below GOAL, without
                                                   those that crash
  totals.py add TOTALS NAME VARIANT SECONDS LOG    adds one run of libFuzzer; VARIANT is short, fast or asan
  totals.py open TOTALS [NAME=COUNT...]            how many inputs crash a target now; all others: none
  totals.py table TOTALS README                    writes the table between its markers
  totals.py summary TOTALS [--json]                one line
"""
import json
import os
import re
import sys

EMPTY = {"executions": 0, "asan_executions": 0, "seconds": 0, "edges": 0, "of_edges": 0, "features": 0, "peak_mb": 0,
         "crashes": 0, "open": 0}
BEGIN = "<!-- totals: written by campaign.sh -->\n"
END = "<!-- end of totals -->\n"


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def store(path, totals):
    """One line a target, replaced in one step: an interrupted campaign leaves the old file or the new one."""
    rows = [f'  {json.dumps(name)}: {json.dumps(row)}' for name, row in sorted(totals.items())]
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(rows) + "\n}\n")
    os.replace(path + ".tmp", path)


def all_executions(row):
    return row["executions"] + row["asan_executions"]


def next_targets(path, targets, goal, regex, count):
    totals = load(path)
    with open(targets, encoding="utf-8") as file:
        names = [line.split()[0] for line in file if re.search(regex, line.split()[0])]
    if not names:
        sys.exit(f"totals.py: no target matches '{regex}'; {targets} lists them")
    rows = {name: totals.get(name, EMPTY) for name in names}
    behind = sorted((all_executions(row), name) for name, row in rows.items()
                    if all_executions(row) < int(goal) and row["open"] == 0)
    for _, name in behind[:int(count)]:
        print(name)


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def add(path, name, variant, seconds, log):
    totals = load(path)
    row = totals.setdefault(name, dict(EMPTY))
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    executed = number(r"stat::number_of_executed_units: (\d+)", text)
    row["asan_executions" if variant == "asan" else "executions"] += executed
    row["seconds"] += int(seconds)
    row["peak_mb"] = max(row["peak_mb"], number(r"stat::peak_rss_mb: +(\d+)", text))
    # An input that is only slow is written too, and ends nothing.
    row["crashes"] += len(re.findall(r"Test unit written to (?!\S*slow-unit-)", text))
    if variant != "asan":  # that build counts other edges
        linked = number(r"Loaded 1 PC tables \((\d+) PCs\)", text)
        if linked != row["of_edges"]:  # other code: what was reached of the old says nothing of it
            row.update(of_edges=linked, edges=0, features=0)
        row["edges"] = max(row["edges"], number(r"cov: (\d+)", text))
        row["features"] = max(row["features"], number(r" ft: (\d+)", text))
    store(path, totals)


def set_open(path, *counts):
    totals = load(path)
    found = dict(count.split("=") for count in counts)
    for name, row in totals.items():
        row["open"] = int(found.get(name, 0))
    store(path, totals)


def table(path, readme):
    lines = ["| target | executions | of them under ASan | hours | edges (of all that is linked) | features | peak MB | crashes, open |\n",
             "|---|---|---|---|---|---|---|---|\n"]
    for name, row in sorted(load(path).items()):
        lines.append(f"| {name} | {all_executions(row):,} | {row['asan_executions']:,} | {row['seconds'] / 3600:.1f} | "
                     f"{row['edges']:,} of {row['of_edges']:,} | {row['features']:,} | {row['peak_mb']} | "
                     f"{row['crashes']}, {row['open']} |\n")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN)
    with open(readme, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + "".join(lines) + END + rest.split(END)[1])


def summary(path, as_json):
    rows = load(path).values()
    figures = {"targets": len(rows), "executions": sum(map(all_executions, rows)),
               "fewest": min(map(all_executions, rows), default=0), "hours": round(sum(r["seconds"] for r in rows) / 3600, 1),
               "crashes": sum(r["crashes"] for r in rows), "open": sum(r["open"] for r in rows)}
    print(json.dumps(figures) if as_json else " ".join(f"{key} {value}" for key, value in figures.items()))


def main(arguments):
    commands = {"next": next_targets, "add": add, "open": set_open, "table": table,
                "summary": lambda path, flag="": summary(path, flag == "--json")}
    if not arguments or arguments[0] not in commands:
        sys.exit(__doc__)
    commands[arguments[0]](*arguments[1:])


main(sys.argv[1:])

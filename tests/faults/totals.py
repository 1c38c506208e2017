"""Adds up the runs of tests/campaign.sh: totals.py FILE COMMAND

FILE is JSON, tests/reliability.json, or tests/reliability-relays.json of fleets with relays; commands that change it
replace it at once, so an end at any time loses nothing.

  add-fleets            standard input has the lines of terse-campaign, one JSON object per fleet
  add-simulation SEED   standard input has what terse-schedules --json printed; SEED was its first
  get KEY               a number of the summary: next_seed, next_schedule, kills, relay_kills, power_losses ...
  summary               everything in one line of JSON
  write-table README    puts the table between the two marker lines of README: those of relays where some were killed
"""

import collections
import json
import math
import os
import pathlib
import signal
import sys

SIDES = ("coordinator", "relay", "client")
RANDOMLY = "at random"
MARKS = "<!-- campaign: begin -->", "<!-- campaign: end -->"
RELAY_MARKS = "<!-- relay campaign: begin -->", "<!-- relay campaign: end -->"
BUCKETS_PER_OCTAVE = 8  # of recovery times: a bucket's bounds are 9% apart


def empty():
    by_side = lambda: {side: {} for side in SIDES}
    return {
        "fleets": 0, "first_seed": None, "next_seed": 1, "rounds": 0, "checks": 0, "lost": 0, "doubled": 0,
        "kills": by_side(), "missed": by_side(), "recovery_ms_buckets": by_side(),
        "simulation": {"next_schedule": 1, "figures": {}, "failpoints": {}},
    }


def load(path):
    """Totals that were written before there were relays have none."""
    totals = json.loads(path.read_text()) if path.exists() else empty()
    for by_side in ("kills", "missed", "recovery_ms_buckets"):
        totals[by_side] = {side: totals[by_side].get(side, {}) for side in SIDES}
    return totals


def save(path, totals):
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(totals, indent=1, sort_keys=True) + "\n")
    os.replace(temporary, path)


def add_counts(into, counts):
    for key, count in counts.items():
        into[key] = into.get(key, 0) + count


def bucket_of(milliseconds):
    return str(max(0, math.floor(BUCKETS_PER_OCTAVE * math.log2(max(milliseconds, 1)))))


def add_fleet(totals, fleet):
    totals["fleets"] += 1
    totals["first_seed"] = min(fleet["seed"], totals["first_seed"] or fleet["seed"])
    totals["next_seed"] = max(totals["next_seed"], fleet["seed"] + 1)
    for key in ("rounds", "checks", "lost", "doubled"):
        totals[key] += fleet[key]
    for side in SIDES:
        add_counts(totals["kills"][side], fleet["kills"][side])
        add_counts(totals["missed"][side], fleet["missed"][side])
        times = collections.Counter(bucket_of(time) for time in fleet["recovery_ms"][side])
        add_counts(totals["recovery_ms_buckets"][side], times)


def add_simulation(totals, first_seed, figures):
    simulation = totals["simulation"]
    failpoints = figures.pop("failpoints")
    simulation["next_schedule"] = max(simulation["next_schedule"], first_seed + figures["schedules"])
    add_counts(simulation["figures"], figures)
    add_counts(simulation["failpoints"], failpoints)


def percentile(buckets, share):
    """The middle of the bucket in which that share of all times is reached; None without any."""
    wanted = share * sum(buckets.values())
    seen = 0
    for index in sorted(int(key) for key in buckets):
        seen += buckets[str(index)]
        if seen >= wanted:
            return round(2 ** ((index + 0.5) / BUCKETS_PER_OCTAVE))
    return None


def kills_of(totals, side):
    return sum(totals["kills"][side].values())


def has_relays(totals):
    return kills_of(totals, "relay") > 0


def sides_of(totals):
    """Those that the table has columns for."""
    return [side for side in SIDES if side != "relay" or has_relays(totals)]


def summary(totals):
    figures = totals["simulation"]["figures"]
    result = {f"{side}_kills": kills_of(totals, side) for side in SIDES}
    result["kills"] = sum(result.values())
    for key in ("lost", "doubled"):
        result[key] = totals[key] + figures.get(key, 0)
    for key in ("rounds", "fleets", "checks", "next_seed"):
        result[key] = totals[key]
    result["power_losses"] = figures.get("power_losses", 0)
    result["schedules"] = figures.get("schedules", 0)
    result["next_schedule"] = totals["simulation"]["next_schedule"]
    result["failpoints_hit"] = {side: len(set(totals["kills"][side]) - {RANDOMLY}) for side in SIDES}
    result["recovery_ms"] = {
        side: {name: percentile(totals["recovery_ms_buckets"][side], share) for name, share in (("p50", 0.5), ("p99", 0.99))}
        for side in SIDES
    }
    return result


def row(*cells):
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |"


def overview(totals):
    figures = summary(totals)
    recovery = figures["recovery_ms"]
    simulated = totals["simulation"]["figures"]
    sides = sides_of(totals)
    lines = [
        row("", *sides),
        "|---|" + "---:|" * len(sides),
        row("processes killed", *(figures[f"{side}_kills"] for side in sides)),
        row("... of them at a failpoint", *(figures[f"{side}_kills"] - totals["kills"][side].get(RANDOMLY, 0) for side in sides)),
        row("... of them at random times", *(totals["kills"][side].get(RANDOMLY, 0) for side in sides)),
        row("recovery, p50", *(f"{recovery[side]['p50']} ms" for side in sides)),
        row("recovery, p99", *(f"{recovery[side]['p99']} ms" for side in sides)),
        "",
        row("", ""),
        "|---|---:|",
        row("fleets, seeds", f"{totals['fleets']:,}, {totals['first_seed']} to {totals['next_seed'] - 1}"),
        row("rounds committed by them", totals["rounds"]),
        row("checks of the stored state", totals["checks"]),
    ]
    simulations = [
        row("simulated schedules", figures["schedules"]),
        row("power losses in them", figures["power_losses"]),
        row("kills in them", simulated.get("coordinator_kills", 0) + simulated.get("client_kills", 0)),
        row("rounds committed in them", simulated.get("rounds_committed", 0)),
    ]
    harm = [
        row("**updates lost**", f"**{figures['lost']}**"),
        row("**updates doubled**", f"**{figures['doubled']}**"),
    ]
    return lines + ([] if has_relays(totals) else simulations) + harm


def by_failpoint(totals):
    simulated = totals["simulation"]["failpoints"]
    sides = sides_of(totals)
    names = sorted(set().union(*(totals["kills"][side] for side in sides)) - {RANDOMLY})
    extra = [] if has_relays(totals) else ["met in simulations"]
    lines = [
        row("failpoint", *(f"{side}s killed there" for side in sides), *extra),
        "|---|" + "---:|" * (len(sides) + len(extra)),
    ]
    for name in names:
        counts = [totals["kills"][side].get(name, 0) or "" for side in sides]
        lines.append(row(f"`{name}`", *counts, *([simulated.get(name, 0)] if extra else [])))
    return lines


def write_table(totals, readme):
    text = readme.read_text()
    begin, end = RELAY_MARKS if has_relays(totals) else MARKS
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    table = "\n".join(overview(totals) + [""] + by_failpoint(totals))
    readme.write_text(f"{head}{begin}\n\n{table}\n\n{end}{tail}")


def main(arguments):
    path = pathlib.Path(arguments[0])
    command = arguments[1]
    totals = load(path)
    if command == "add-fleets":
        # A person who interrupts the campaign wants what it has done so far.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for line in sys.stdin:
            add_fleet(totals, json.loads(line))
            save(path, totals)
    elif command == "add-simulation":
        add_simulation(totals, int(arguments[2]), json.loads(sys.stdin.readline()))
        save(path, totals)
    elif command == "get":
        print(summary(totals)[arguments[2]])
    elif command == "summary":
        print(json.dumps(summary(totals)))
    elif command == "write-table":
        write_table(totals, pathlib.Path(arguments[2]))
    else:
        sys.exit(f"totals.py: no command '{command}'; see its first lines")


if __name__ == "__main__":
    main(sys.argv[1:])

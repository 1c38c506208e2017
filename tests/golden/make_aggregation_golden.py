#!/usr/bin/env python3
"""What every rule of aggregation makes of eleven sparse updates, and imputed_mean of eleven that agree, in exact rational
arithmetic and straight from the definitions, for tests/coordinator/aggregation_test.cc. Independent of Terse's code.

usage: make_aggregation_golden.py > tests/golden/aggregation.txt

Lines: "update V V ..." (12 elements of two tensors of 5 and 7; a "-" was not sent), then "RULE ABSENT V V ..." of them; then
the same again with other updates.
"""
from fractions import Fraction as F

F_HOSTILE = 2
TRIM = F(1, 5)
TENSORS = [(0, 5), (5, 12)]
SIZE = 12


def updates():
    """Eleven updates from a small generator; two of them are far off."""
    state, rows = 12345, []
    for client in range(11):
        row = []
        for _ in range(SIZE):
            state = (1103515245 * state + 12345) % 2**31
            value = F((state >> 16) % 257 - 128, 64)
            sent = (state >> 8) % 3 != 0 and value != 0
            row.append(value * (9 if client in (3, 7) else 1) if sent else None)
        rows.append(row)
    return rows


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trimmed(values):
    ordered = sorted(values)
    cut = -((-TRIM * len(ordered)) // 1)  # rounded up
    cut = min(int(cut), (len(ordered) - 1) // 2)
    kept = ordered[cut:len(ordered) - cut]
    return sum(kept) / len(kept)


def by_coordinate(rows, absent, combine):
    step = []
    for i in range(SIZE):
        votes = [row[i] for row in rows if row[i] is not None]
        if not votes:
            step.append(F(0))
        elif absent == "zero":
            step.append(combine(i, votes + [F(0)] * (len(rows) - len(votes))))
        else:
            share = F(len(votes), len(rows)) if absent == "share" else 1
            step.append(combine(i, votes) * share)
    return step


def filled(row):
    return [value or F(0) for value in row]


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(filled(a), filled(b)))


def krum_order(rows, among, neighbours):
    scores = []
    for i in among:
        distances = sorted(distance(rows[i], rows[j]) for j in among if j != i)
        scores.append((sum(distances[:neighbours]), sum(distances), i))
    return [i for *_, i in sorted(scores)]


def average(rows):
    return [sum(column) / len(rows) for column in zip(*map(filled, rows))]


def multi_krum(rows, keep):
    n = len(rows)
    return average([rows[i] for i in krum_order(rows, range(n), n - F_HOSTILE - 2)[:keep]])


def bulyan(rows, absent):
    left, selected = list(range(len(rows))), []
    while len(selected) < len(rows) - 2 * F_HOSTILE:
        best = krum_order(rows, left, max(1, len(left) - F_HOSTILE - 2))[0]
        left.remove(best)
        selected.append(best)

    def around_median(_, votes):
        middle = median(votes)
        keep = max(1, len(votes) - 2 * F_HOSTILE)
        near = sorted(votes, key=lambda vote: (abs(vote - middle), vote))[:keep]
        return sum(near) / keep

    return by_coordinate([rows[i] for i in sorted(selected)], absent, around_median)


def majority(rows, absent):
    sizes = []
    for begin, end in TENSORS:
        means = []
        for row in rows:
            sent = [abs(value) for value in row[begin:end] if value is not None]
            if sent:
                means.append(sum(sent) / len(sent))
        sizes += [median(means)] * (end - begin)

    def vote(i, votes):
        up, down = sum(v > 0 for v in votes), sum(v < 0 for v in votes)
        return sizes[i] * ((2 * up > len(votes)) - (2 * down > len(votes)))

    return by_coordinate(rows, absent, vote)


def imputed(rows):
    """An average in which silence counts as the mean of those who spoke, as far as the updates agree."""
    agreements = []
    for begin, end in TENSORS:
        products = most = F(0)
        for i in range(begin, end):
            votes = [row[i] for row in rows if row[i] is not None]
            squares = sum(vote * vote for vote in votes)
            products += sum(votes) ** 2 - squares
            most += (len(votes) - 1) * squares
        agreements.append(max(F(0), products / most))
    trust = max(F(0), 2 * sum(agreements) / len(agreements) - 1)
    step = []
    for i in range(SIZE):
        votes = [row[i] for row in rows if row[i] is not None]
        factor = min(F(4), 1 + trust * F(len(rows) - len(votes), len(votes)))
        step.append(sum(votes) / len(rows) * factor)
    return step


def alike(rows):
    """The same updates but for their signs and two hostile ones, so that they agree by 0.7."""
    return [[value and abs(value) / (9 if i in (3, 7) else 1) for value in row] for i, row in enumerate(rows)]


def show(rows):
    for row in rows:
        print("update", *("-" if value is None else float(value) for value in row))


def main():
    rows = updates()
    show(rows)
    n = len(rows)
    for absent in ("share", "skip", "zero"):
        for rule, step in (
            ("mean", average(rows)),
            ("median", by_coordinate(rows, absent, lambda _, votes: median(votes))),
            ("trimmed_mean", by_coordinate(rows, absent, lambda _, votes: trimmed(votes))),
            ("krum", multi_krum(rows, 1)),
            ("multi_krum", multi_krum(rows, n - 2 * F_HOSTILE - 3)),
            ("bulyan", bulyan(rows, absent)),
            ("majority_vote", majority(rows, absent)),
            ("imputed_mean", imputed(rows)),
        ):
            print(rule, absent, *map(float, step))
    show(alike(rows))
    print("imputed_mean share", *map(float, imputed(alike(rows))))


main()

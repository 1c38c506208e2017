#!/usr/bin/env python3
"""The steps of the server optimizers in exact rational arithmetic, from the formulas of the papers (Reddi et al. 2021,
Algorithm 2; Hsu et al. 2019; Douillard et al. 2023), for tests/coordinator/server_optimizer_test.cc.

usage: make_server_optimizer_golden.py > tests/golden/server_optimizers.txt
"""
from decimal import Decimal as D, getcontext

getcontext().prec = 50
AVERAGES = [["1", "-0.5", "0"], ["0.25", "-2", "0.125"], ["-0.75", "1", "4"]]


def adaptive(rule, rate=D("0.5"), beta1=D("0.9"), beta2=D("0.99"), tau=D("0.1")):
    m = [D(0)] * 3
    v = [tau * tau] * 3
    for average in AVERAGES:
        step = []
        for i, a in enumerate(map(D, average)):
            square = a * a
            m[i] = beta1 * m[i] + (1 - beta1) * a
            if rule == "adagrad":
                v[i] += square
            elif rule == "adam":
                v[i] = beta2 * v[i] + (1 - beta2) * square
            else:
                sign = (v[i] > square) - (v[i] < square)
                v[i] -= (1 - beta2) * square * sign
            step.append(rate * m[i] / (v[i].sqrt() + tau))
        yield step


def momentum(nesterov, rate=D("0.5"), factor=D("0.75")):
    m = [D(0)] * 3
    for average in AVERAGES:
        step = []
        for i, a in enumerate(map(D, average)):
            m[i] = factor * m[i] + a
            step.append(rate * (a + factor * m[i]) if nesterov else rate * m[i])
        yield step


def main():
    rows = {name: adaptive(name) for name in ("adam", "yogi", "adagrad")}
    rows["sgd"] = momentum(False)
    rows["nesterov"] = momentum(True)
    for name, steps in rows.items():
        for step in steps:
            print(name, *(f"{value:.12f}" for value in step))


if __name__ == "__main__":
    main()

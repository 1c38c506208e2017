"""An evaluator of the coordinator's: metric_evaluator.py [--at PATH] [--die-at ROUND] [--shape N] [--bad ROUND]
[--first-takes SECONDS]"""
import argparse
import os
import sys
import time

import numpy as np

import terse

parser = argparse.ArgumentParser()
parser.add_argument("--at")
parser.add_argument("--die-at", type=int)
parser.add_argument("--bad", type=int)
parser.add_argument("--first-takes", type=float, default=0)
parser.add_argument("--shape", type=int, default=5)
options = parser.parse_args()
model = {"w": np.zeros(options.shape, dtype=np.float32)}


def evaluate(evaluated):
    if evaluated.round == options.die_at:
        os._exit(3)
    if evaluated.round == options.bad:
        return {"accuracy": 0.5}
    if evaluated.round == 1:
        time.sleep(options.first_takes)
    print("evaluated", evaluated.run["run"], evaluated.round, model["w"][0], flush=True)
    return {"loss": float(np.mean(model["w"])), "accuracy": min(1.0, evaluated.round / 4), "f1": np.float32(0.25)}


terse.serve_evaluator(model, evaluate, samples=77, path=options.at)
sys.exit("the coordinator is gone")

"""A trainer that trains nothing, for terse-trainer-bench: boundary_trainer.py [--arrays] [--tensors N] [--elements N]

The model has so many elements (default: 25.6 million) in so many tensors (default: 161, as ResNet50 has), of torch or, with --arrays,
of NumPy.
"""
import argparse

import numpy as np

import terse


def make_model(arguments):
    sizes = [part.size for part in np.array_split(np.empty(arguments.elements, dtype=np.uint8), arguments.tensors)]
    if arguments.arrays:
        return {f"t{i}": np.zeros(size, dtype=np.float32) for i, size in enumerate(sizes)}
    import torch

    return torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for size in sizes])


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--arrays", action="store_true")
parser.add_argument("--tensors", type=int, default=161)
parser.add_argument("--elements", type=int, default=25_600_000)
fleet = terse.attach()
try:
    for current in fleet.rounds(make_model(parser.parse_args())):
        current.commit(samples=1, metrics={"loss": 1.0})
except terse.ClientError:
    pass  # the benchmark is over

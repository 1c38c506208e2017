"""Exports a model and its data for a run of Terse: model.pt, and data/train.npz and data/test.npz.

usage: export_model.py DIR

The model is a residual network for tables, with batch normalisation and dropout: any module whose forward takes a batch
and returns logits would do. Its initial weights go with it, and the run starts from them. The data are points around
random centres, several for each class. Needs python3-torch and python3-numpy.
"""

import os
import sys

import numpy
import torch

FEATURES = 16
CLASSES = 4
CENTRES_EACH = 3
WIDTH = 48
BLOCKS = 2


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(WIDTH)
        self.widen = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.dropout = torch.nn.Dropout(0.1)
        self.narrow = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(self.dropout(torch.relu(self.widen(self.norm(x)))))


class TableNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.entry = torch.nn.Linear(FEATURES, WIDTH)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.norm = torch.nn.BatchNorm1d(WIDTH)
        self.exit = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.exit(torch.relu(self.norm(self.blocks(self.entry(x)))))


def save_points(path, count, centres, generator):
    labels = generator.integers(CLASSES, size=count)
    which = generator.integers(CENTRES_EACH, size=count)
    points = centres[labels, which] + generator.normal(size=(count, FEATURES))
    numpy.savez(path, x=points.astype(numpy.float32), y=labels.astype(numpy.int64))


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = arguments[0]
    os.makedirs(os.path.join(folder, "data"), exist_ok=True)
    torch.manual_seed(1)
    torch.jit.script(TableNet()).save(os.path.join(folder, "model.pt"))
    generator = numpy.random.default_rng(1)
    centres = 1.2 * generator.normal(size=(CLASSES, CENTRES_EACH, FEATURES))
    save_points(os.path.join(folder, "data", "train.npz"), 3000, centres, generator)
    save_points(os.path.join(folder, "data", "test.npz"), 1000, centres, generator)


if __name__ == "__main__":
    main(sys.argv[1:])

"""LeNet5 on MNIST with a training loop in Python: lenet_member.py COORDINATOR STATE DATA INDEX COUNT"""
import gzip
import pathlib
import sys
import time

import numpy as np
import torch

import terse


class LeNet5(torch.nn.Module):
    """Caffe's, with the names that Terse's own has."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 20, 5)
        self.conv2 = torch.nn.Conv2d(20, 50, 5)
        self.ip1 = torch.nn.Linear(800, 500)
        self.ip2 = torch.nn.Linear(500, 10)

    def forward(self, x):
        x = torch.max_pool2d(self.conv1(x), 2)
        x = torch.max_pool2d(self.conv2(x), 2)
        return self.ip2(torch.relu(self.ip1(x.flatten(1))))


def read_idx(folder, name, header):
    path = pathlib.Path(folder) / name
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(name + ".gz").read_bytes())
    return np.frombuffer(data, dtype=np.uint8, offset=header)


def shard(folder, index, count):
    """This client's part of the training set, shuffled with a seed that all clients share and cut."""
    images = read_idx(folder, "train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    labels = read_idx(folder, "train-labels-idx1-ubyte", 8)
    rows = np.random.default_rng(1).permutation(len(labels))[index::count]
    return torch.from_numpy(images[rows]).float() / 255, torch.from_numpy(labels[rows].astype(np.int64))


def batches(x, y, size, seed):
    """Batches without end, every example once before any comes again."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(y), generator=generator)
        for begin in range(0, len(y) - size + 1, size):
            rows = order[begin:begin + size]
            yield x[rows], y[rows]


def main():
    coordinator, state, folder, index, count = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
    torch.set_num_threads(1)
    x, y = shard(folder, index, count)
    model = LeNet5()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    stream = batches(x, y, 128, seed=index)
    with terse.join(coordinator, state=state, log_level="warn") as fleet:
        for current in fleet.rounds(model, optimizer, samples=len(y)):
            begin, total = time.monotonic(), 0.0
            for _ in range(current.local_steps):
                images, labels = next(stream)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.item()
            print("trained", current.number, time.monotonic() - begin, flush=True)
            current.commit(samples=128 * current.local_steps, metrics={"loss": total / current.local_steps})


if __name__ == "__main__":
    main()

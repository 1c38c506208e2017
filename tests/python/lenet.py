"""LeNet5 and MNIST for programs that train it in Python."""
import gzip
import pathlib

import numpy as np
import torch


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


def examples(folder, which):
    """The images, as bytes in NCHW, and the labels of "train" or "t10k"."""
    return (read_idx(folder, f"{which}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28),
            read_idx(folder, f"{which}-labels-idx1-ubyte", 8))


def to_torch(images, labels):
    return torch.tensor(images).float() / 255, torch.from_numpy(labels.astype(np.int64))


def shard(folder, index, count):
    """This client's part of the training set, shuffled with a seed that all clients share and cut."""
    images, labels = examples(folder, "train")
    rows = np.random.default_rng(1).permutation(len(labels))[index::count]
    return to_torch(images[rows], labels[rows])


def batches(x, y, size, seed):
    """Batches without end, every example once before any comes again."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(y), generator=generator)
        for begin in range(0, len(y) - size + 1, size):
            rows = order[begin:begin + size]
            yield x[rows], y[rows]

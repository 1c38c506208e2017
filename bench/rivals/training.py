"""The training that all rivals do: LeNet5 on MNIST, one round of one client, and the test of a model."""
import torch
from lenet import LeNet5, batches, examples, to_torch

BATCH_SIZE = 128


def start_model(seed):
    """The model that every rival starts from."""
    torch.manual_seed(seed)
    return LeNet5()


def train_round(model, x, y, *, number, index, steps):
    """A round's optimizer steps, with batches that depend on the round and the client alone. Returns the mean loss.

    The optimizer is made anew in every round, because a ClientApp of Flower is a new process in every round.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    stream, total = batches(x, y, BATCH_SIZE, seed=1000 * number + index), 0.0
    for _ in range(steps):
        images, labels = next(stream)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


def accuracy(model, folder):
    """On the 10,000 test images."""
    x, y = to_torch(*examples(folder, "t10k"))
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in zip(x.split(1000), y.split(1000)))
    return right / len(y)

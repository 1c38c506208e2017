"""LeNet5 on MNIST with a training loop in Python: lenet_member.py COORDINATOR STATE DATA INDEX COUNT"""
import sys
import time

import torch

import terse
from lenet import LeNet5, batches, shard


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

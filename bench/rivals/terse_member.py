"""A client of Terse with the rivals' training: terse_member.py COORDINATOR STATE DATA INDEX COUNT"""
import sys

import terse
import torch
from lenet import LeNet5, shard
from training import BATCH_SIZE, train_round


def main():
    coordinator, state, folder, index, count = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
    torch.set_num_threads(1)
    x, y = shard(folder, index, count)
    model = LeNet5()
    with terse.join(coordinator, state=state, insecure=True, log_level="warn") as fleet:
        for current in fleet.rounds(model, samples=len(y)):
            loss = train_round(model, x, y, number=current.number, index=index, steps=current.local_steps)
            current.commit(samples=BATCH_SIZE * current.local_steps, metrics={"loss": loss})


if __name__ == "__main__":
    main()

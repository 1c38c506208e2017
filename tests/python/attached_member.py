"""A trainer for terse-client --trainer and --trainer-socket: attached_member.py [PATH | --slow]

With --slow a step takes long enough for round.progress to ask whether to go on.
"""
import sys
import time

import torch

import terse


def main():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 4), torch.arange(32) % 2
    is_slow = sys.argv[1:] == ["--slow"]
    fleet = terse.attach(*([] if is_slow else sys.argv[1:]))
    try:
        for current in fleet.rounds(model, optimizer, samples=len(x)):
            for step in range(current.local_steps):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                time.sleep(0.3 if is_slow else 0)
                if not current.progress(step + 1):
                    break
            current.commit(samples=len(x) * current.local_steps, metrics={"loss": loss.item()})
    except terse.ClientError as error:
        print("attached:", error, flush=True)


main()

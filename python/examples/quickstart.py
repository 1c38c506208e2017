"""One client with a training loop of its own: quickstart.py COORDINATOR STATE SEED"""
import sys

import terse
import torch
from spirals import make_data, make_model

coordinator, state, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
model, (x, y) = make_model(), make_data(seed)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
with terse.join(coordinator, state=state, log_level="warn") as fleet:
    for round in fleet.rounds(model, optimizer, samples=len(x)):
        total = 0.0
        for _ in range(round.local_steps):
            rows = torch.randint(len(x), (64,))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
        round.commit(samples=64 * round.local_steps, metrics={"loss": total / round.local_steps})
x, y = make_data(seed=99)
print(f"{state}: {fleet.finished}; the common model is right about {(model(x).argmax(1) == y).float().mean():.1%} of new points")

"""A member whose model has narrow types, and who changes one value a round.

usage: narrow_member.py COORDINATOR STATE {bfloat16,float16}
"""
import sys

import torch

import terse

address, state, name = sys.argv[1:]
model = torch.nn.Linear(16, 8)
model.weight.data = model.weight.data.to(getattr(torch, name))
if name == "bfloat16":
    model.bias.data = model.bias.data.to(torch.bfloat16)  # all of it, so that bfloat16 is what is shared

with terse.join(address, state=state) as fleet:
    for each in fleet.rounds(model):
        with torch.no_grad():
            model.weight[0, 0] += 1
        each.commit(samples=1, metrics={"loss": 0.5})
print(fleet.finished)

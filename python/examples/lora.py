"""Low-rank adapters (LoRA, Hu et al. 2021) of a small transformer, trained by a fleet: only the adapters travel.

    lora.py create ADMIN FOLDER [ROUNDS]     trains the common base model here, and has a coordinator serve the run of its adapters
    lora.py join COORDINATOR FOLDER CLIENT   takes part as client 0, 1, ...

The base model continues sequences that count up by one. The fleet teaches it to count by other steps; each client has sequences of
one step alone, so that the model learns them all only together.
"""
import math
import os
import sys

import terse
import torch
from torch.nn import functional

SYMBOLS, LENGTH, WIDTH, HEADS, LAYERS, RANK = 32, 24, 64, 4, 2, 4
CLIENTS = 2
STEPS = (1, 3)  # by which the sequences of each client count


class Adapted(torch.nn.Module):
    """A linear layer that is frozen, plus a product of two small matrices, which is zero at first."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = torch.nn.Parameter(torch.randn(RANK, layer.in_features) / math.sqrt(layer.in_features))
        self.b = torch.nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, x):
        return self.layer(x) + x @ self.a.T @ self.b.T


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.query_key_value, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.query_key_value(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols, self.places = torch.nn.Embedding(SYMBOLS, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.symbols(x) + self.places.weight[:x.shape[1]])))


def with_adapters(base):
    """The base model, frozen, with adapters in its blocks. The same on every client, whose adapters all start alike."""
    torch.manual_seed(1)
    base.requires_grad_(False)
    for block in base.blocks:
        for name in ("query_key_value", "out", "wide", "narrow"):
            setattr(block, name, Adapted(getattr(block, name)))
    return base


def sequences(steps, count, generator):
    """Sequences from a random symbol on, each by one of the steps, around the circle of all symbols."""
    start = torch.randint(SYMBOLS, (count, 1), generator=generator)
    step = torch.tensor(steps)[torch.randint(len(steps), (count, 1), generator=generator)]
    return (start + step * torch.arange(LENGTH + 1)) % SYMBOLS


def loss_of(model, sequence):
    return functional.cross_entropy(model(sequence[:, :-1]).flatten(0, 1), sequence[:, 1:].flatten())


@torch.no_grad()
def accuracy_of(model, steps):
    """Of the symbols from the third on: two tell which step it is."""
    sequence = sequences(steps, 200, torch.Generator().manual_seed(99))
    return (model(sequence[:, :-1]).argmax(-1) == sequence[:, 1:])[:, 1:].float().mean().item()


def train(model, optimizer, steps, count, generator):
    """Returns the mean loss over so many optimizer steps."""
    total = 0.0
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of(model, sequences(steps, 32, generator))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / count


def create(admin, folder, rounds=60):
    torch.manual_seed(0)
    base, generator = Transformer(), torch.Generator().manual_seed(0)
    train(base, torch.optim.Adam(base.parameters(), lr=0.003), (1,), 150, generator)
    os.makedirs(folder, exist_ok=True)
    torch.save(base.state_dict(), f"{folder}/base.pt")
    print(f"the base model is right about {accuracy_of(base, (1,)):.1%} of the symbols that count by 1, and about "
          f"{accuracy_of(base, (3,)):.1%} of those that count by 3")
    run = terse.Run("lora", model=with_adapters(base), codec=terse.codecs.sbc(density=0.05), rounds=int(rounds), clients=CLIENTS, local_steps=5)
    run.create(folder, admin=admin)


def join(coordinator, folder, client):
    base = Transformer()
    base.load_state_dict(torch.load(f"{folder}/base.pt"))
    model, generator = with_adapters(base), torch.Generator().manual_seed(client + 1)
    adapters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(adapters, lr=0.005)
    mine = (STEPS[client % len(STEPS)],)
    with terse.join(coordinator, state=f"{folder}/client-{client}", log_level="warn") as fleet:
        for round in fleet.rounds(model, optimizer):
            round.evaluate({"accuracy of all": accuracy_of(model, STEPS), "accuracy of mine": accuracy_of(model, mine)}, samples=200)
            loss = train(model, optimizer, mine, round.local_steps, generator)
            round.commit(samples=32 * round.local_steps, metrics={"loss": loss})
    whole = sum(p.numel() for p in model.parameters())
    print(f"{fleet.finished}; {sum(p.numel() for p in adapters)} of {whole} parameters travelled, and the model is right about "
          f"{accuracy_of(model, STEPS):.1%} of all symbols")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "create":
        create(*sys.argv[2:])
    else:
        join(sys.argv[2], sys.argv[3], int(sys.argv[4]))

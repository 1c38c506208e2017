#!/usr/bin/env python3
"""Which elements of an update are worth their bits: ideas for the mask of sparse binary updates, simulated.

  mask_study.py lenet5|charlstm|resnet32 DATA [--ideas base,age,...] [--seeds 1,2,3] [--json FILE]

DATA is the folder of the data set. Four clients train on equal shards, add what they learnt to their residual, and send part of it: of
each tensor the same number of elements ("counts = 'equal'"), all as one value. The server takes the imputed mean (imputed_mean.h). Every
idea has the bits of `base`, of each client in each round and each tensor; ideas that only weigh elements have its number of elements, which
is not quite the same where a tensor has fewer elements of a sign. Bits are those of an ideal code, and no codec is run: log2 of the number of
masks, or the entropy under the idea's own model of the mask, and 32 bits a tensor for the value. Prints a table of the ends of the runs over
the seeds, and writes every run to FILE.

base       SBC: of both signs the one whose largest elements have the greater sum, and of that sign no more than there are (Sattler et al. 2018).
both       The largest elements of both signs, one bit each for the sign, and so fewer of them.
either     Of `base` and `both`, for each tensor, what keeps more of the residual's energy. Terse's codec "sbc_or_stc" compares masks of as many
           elements instead, by energy per bit.
sign       The sign is that of the model's last step, where it had one, and costs nothing.
history    Elements that this client sent lately are cheaper, in the code (a mixture of even odds and the faded frequency of each
           element) and in the selection, which takes what has the most value per bit.
age        The longer an element has waited in the residual, the more it counts: times the square root of one plus its rounds.
youth      The opposite of age.
momentum   The residual takes up a velocity, 0.5 of its last and the update, which is cleared where something is sent (Deep Gradient
           Compression, Lin et al. 2018, section 3.2).
curvature  Elements count times the fourth root of their mean squared gradient.
rate       No mask, but the control of `momentum`, which makes what a client sends twice as large in the long run: `base` with twice the step.
tensors    Counts by tensor are those that the scores of `curvature` give to all of the model at once: as many elements, not exactly the bits.
dct        Residuals and messages are coefficients of cosine transforms of blocks of at most 64 x 64 (DeMo, Peng et al. 2024); the server
           transforms its step back.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))
import lenet  # noqa: E402  # pylint: disable=wrong-import-position

CLIENTS = 4
IDEAS = ("base", "both", "either", "sign", "history", "age", "youth", "momentum", "rate", "curvature", "tensors", "dct")


class LeNet5Task:
    """SBC's LeNet5: Adam, batches of 128."""
    steps, rounds, density, clip, figure = 30, 30, 0.001, None, "accuracy"

    def __init__(self, data, seed):
        images, labels = lenet.to_torch(*lenet.examples(data, "train"))
        self.test = lenet.to_torch(*lenet.examples(data, "t10k"))
        order = np.random.default_rng(seed).permutation(len(labels))
        self.streams = [lenet.batches(images[order[c::CLIENTS]], labels[order[c::CLIENTS]], 128, seed * CLIENTS + c)
                        for c in range(CLIENTS)]

    def model(self):
        net = lenet.LeNet5()
        for p in net.parameters():
            if p.dim() == 1:
                nn.init.zeros_(p)
            else:
                nn.init.uniform_(p, -math.sqrt(3 / p[0].numel()), math.sqrt(3 / p[0].numel()))
        return net

    def optimizer(self, net):
        return torch.optim.Adam(net.parameters(), lr=0.001)

    def loss(self, net, client):
        x, y = next(self.streams[client])
        return functional.cross_entropy(net(x), y)

    def evaluate(self, net):
        x, y = self.test
        return sum((net(a).argmax(1) == b).sum().item() for a, b in zip(x.split(1000), y.split(1000))) / len(y)


class CharacterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(65, 200), nn.LSTM(200, 200, 2), nn.Linear(200, 65)
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def forward(self, x, state):
        h, state = self.lstm(self.embedding(x), state)
        return self.head(h), state


class CharLstmTask:
    """SBC's CharLSTM: SGD of rate 1, clipped at 5, windows of 35 characters, 5 at a time."""
    steps, rounds, density, clip, figure = 10, 80, 0.02, 5.0, "perplexity"

    def __init__(self, data, seed):
        text = (pathlib.Path(data) / "tinyshakespeare.txt").read_text()
        of = {c: i for i, c in enumerate(sorted(set(text)))}
        codes = torch.tensor([of[c] for c in text])
        cut = len(codes) * 9 // 10
        self.test = codes[cut:]
        shards = codes[:cut].chunk(CLIENTS)
        self.text = [shards[(c + seed) % CLIENTS] for c in range(CLIENTS)]
        self.text = [s[:len(s) // 5 * 5].view(5, -1).t().contiguous() for s in self.text]
        self.at, self.state = [0] * CLIENTS, [None] * CLIENTS

    def model(self):
        return CharacterNet()

    def optimizer(self, net):
        return torch.optim.SGD(net.parameters(), lr=1.0)

    def loss(self, net, client):
        text, begin = self.text[client], self.at[client]
        if begin + 36 > len(text):
            begin, self.state[client] = 0, None
        self.at[client] = begin + 35
        out, state = net(text[begin:begin + 35], self.state[client])
        self.state[client] = tuple(s.detach() for s in state)
        # Summed over time and averaged over the batch, as sequence_cross_entropy is.
        return 35 * functional.cross_entropy(out.flatten(0, 1), text[begin + 1:begin + 36].flatten())

    def evaluate(self, net):
        length = len(self.test) // 50
        text = self.test[:length * 50].view(50, length).t()
        out, _ = net(text[:-1], None)
        return math.exp(functional.cross_entropy(out.flatten(0, 1), text[1:].flatten()).item())


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.stride, self.grow = stride, channels - channels_in
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        h = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(h + functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.grow)))


class ResNet32Task:
    """ResNet32 (He et al. 2015) on CIFAR-10: SGD of rate 0.1 with momentum 0.9, batches of 32, no augmentation."""
    steps, rounds, density, clip, figure = 10, 30, 0.05, None, "test loss"

    def __init__(self, data, seed):
        raw = [np.fromfile(pathlib.Path(data) / name, dtype=np.uint8).reshape(-1, 3073)
               for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]]
        self.test = self.tensors(raw[-1][:2000])
        rows = np.concatenate(raw[:-1])
        order = np.random.default_rng(seed).permutation(len(rows))
        self.streams = [lenet.batches(*self.tensors(rows[order[c::CLIENTS]]), 32, seed * CLIENTS + c) for c in range(CLIENTS)]

    @staticmethod
    def tensors(rows):
        x = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255)
        return (x - 0.4734) / 0.2516, torch.from_numpy(rows[:, 0].astype(np.int64))

    def model(self):
        shapes = [(16, 16, 1)] * 5 + [(16, 32, 2)] + [(32, 32, 1)] * 4 + [(32, 64, 2)] + [(64, 64, 1)] * 4
        return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                             *(Block(*shape) for shape in shapes), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def optimizer(self, net):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)

    def loss(self, net, client):
        x, y = next(self.streams[client])
        return functional.cross_entropy(net(x), y)

    def evaluate(self, net):
        x, y = self.test
        return statistics.mean(functional.cross_entropy(net(a), b).item() for a, b in zip(x.split(500), y.split(500)))


TASKS = {"lenet5": LeNet5Task, "charlstm": CharLstmTask, "resnet32": ResNet32Task}


def mask_bits(count, size):
    """Of the number of masks with `count` of `size` elements."""
    return (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)


def set_parameters(net, tensors):
    with torch.no_grad():
        for p, w in zip(net.parameters(), tensors):
            p.copy_(w.view_as(p))


def cosines(size):
    """The orthonormal cosine transform of `size` values, as a matrix."""
    numbers = torch.arange(size, dtype=torch.double)
    rows = math.sqrt(2 / size) * torch.cos(math.pi / size * torch.outer(numbers, numbers + 0.5))
    rows[0] /= math.sqrt(2)
    return rows.float()


def dct(flat, shape, back=False):
    """Transforms a tensor, as a matrix of shape[0] rows, by blocks whose sides are the largest divisors up to 64."""
    rows, columns = shape[0], math.prod(shape[1:])
    height, width = (max(d for d in range(1, 65) if side % d == 0) for side in (rows, columns))
    left, right = cosines(height), cosines(width)
    if back:
        left, right = left.t(), right.t()
    blocks = flat.view(rows // height, height, columns // width, width)
    return torch.einsum("ij,ajbl,kl->aibk", left, blocks, right).reshape(-1)


class Client:
    """The optimizer and the memory of a client. Tensors are those of the model, flattened."""

    def __init__(self, task, net, index):
        self.task, self.net, self.index = task, net, index
        self.parameters, self.optimizer = list(net.parameters()), task.optimizer(net)
        self.squares = [torch.zeros(p.numel()) for p in self.parameters]  # the gradient's, averaged
        zeros = [torch.zeros_like(s) for s in self.squares]
        self.residual, self.age, self.velocity, self.frequency = ([z.clone() for z in zeros] for _ in range(4))

    def train(self, model):
        """The change of each tensor of `model` in a round; the network's buffers stay here."""
        set_parameters(self.net, model)
        self.net.train()
        for _ in range(self.task.steps):
            self.optimizer.zero_grad()
            self.task.loss(self.net, self.index).backward()
            if self.task.clip:
                nn.utils.clip_grad_norm_(self.parameters, self.task.clip)
            for s, p in zip(self.squares, self.parameters):
                s.mul_(0.99).addcmul_(p.grad.view(-1), p.grad.view(-1), value=0.01)
            self.optimizer.step()
        return [p.detach().view(-1) - w for p, w in zip(self.parameters, model)]

    def take_up(self, deltas, idea):
        for i, delta in enumerate(deltas):
            if idea == "momentum":
                self.velocity[i].mul_(0.5).add_(delta)
                delta = self.velocity[i]
            old = self.residual[i]
            self.residual[i] = old + delta
            # An element is as old as the part of it that waited.
            self.age[i] = (self.age[i] + 1) * (old.abs() / (old.abs() + delta.abs() + 1e-30))

    def settle(self, i, positions, values, idea):
        self.residual[i][positions] -= values
        self.age[i][positions] = 0
        self.velocity[i][positions] = 0
        self.frequency[i].mul_(0.9)
        self.frequency[i][positions] += 1
        momentum = self.optimizer.state[self.parameters[i]].get("momentum_buffer")
        if momentum is not None and idea != "dct":  # momentum factor masking, which coefficients have no elements for
            momentum.view(-1)[positions] = 0


def score(client, i, idea):
    residual = client.residual[i]
    if idea == "age":
        return residual * (1 + client.age[i]).sqrt()
    if idea == "youth":
        return residual / (1 + client.age[i]).sqrt()
    if idea in ("curvature", "tensors"):
        return residual * client.squares[i].pow(0.25)
    return residual


def planned_counts(client, density, idea):
    sizes = [r.numel() for r in client.residual]
    even = max(1, round(density * max(sizes)))
    counts = [min(even, size) for size in sizes]
    if idea != "tensors":
        return counts
    scores = [score(client, i, idea).abs() for i in range(len(sizes))]
    least = torch.cat(scores).topk(sum(counts))[0][-1]
    return [max(1, int((s >= least).sum())) for s in scores]


def one_sign(scores, values, count):
    """Of each sign the `count` elements with the largest scores, or all that have it; the sign with the greater sum of values."""
    sides = []
    for sign in (1.0, -1.0):
        positions = (sign * scores).topk(count)[1]
        positions = positions[sign * values[positions] > 0]
        sides.append((positions, torch.full((len(positions),), sign)))
    return max(sides, key=lambda side: (values[side[0]] * side[1]).sum().item())


def base_bits(residual, count):
    return mask_bits(len(one_sign(residual, residual, count)[0]), residual.numel())


def both_signs(residual, count):
    """The largest elements of both signs, as many as the bits of `base` pay for."""
    bits, size = base_bits(residual, count), residual.numel()
    number = next((k for k in range(count, 0, -1) if mask_bits(k, size) + k <= bits), 1)
    positions = residual.abs().topk(number)[1]
    return positions, residual[positions].sign()


def energy(residual, positions, signs):
    """What is sent, one value times the signs, has of the residual's energy."""
    return (residual[positions] * signs).sum().item() ** 2 / max(1, len(positions))


def by_history(frequency, residual, count):
    """For each sign, what has the most value per bit, within the bits of `base`; the better of both."""
    size = residual.numel()
    chance = count / size
    share = (0.5 * chance + 0.5 * count * frequency / frequency.sum()).clamp(1e-7, 0.5)
    bits = base_bits(residual, count)
    cost, silence = torch.log2((1 - share) / share), -torch.log2(1 - share).sum().item()
    found = []
    for sign in (1.0, -1.0):
        value = (residual * sign).clamp(min=0)
        low, high = 0.0, value.max().item()
        for _ in range(25):
            price = (low + high) / 2
            if silence + cost[value > price * cost].sum().item() > bits:
                low = price
            else:
                high = price
        found.append((value > high * cost).nonzero().view(-1))
    up, down = found
    best, sign = (up, 1.0) if residual[up].sum() >= -residual[down].sum() else (down, -1.0)
    return best, torch.full((len(best),), sign)


def choose(client, i, count, idea, step):
    """Positions in tensor i and the sign of each."""
    residual, scores = client.residual[i], score(client, i, idea)
    size = residual.numel()
    if idea == "history" and size > 1000 and client.frequency[i].sum() > 0:
        return by_history(client.frequency[i], residual, count)
    if idea == "both":
        return both_signs(residual, count)
    if idea == "either":
        return max(one_sign(scores, residual, count), both_signs(residual, count), key=lambda sent: energy(residual, *sent))
    if idea == "sign" and step is not None:
        positions, signs = one_sign(scores, residual, count)
        if len(positions) == 0:
            return positions, signs
        predicted = torch.where(step[i] != 0, step[i].sign(), signs[0])
        positions = (scores * predicted).topk(len(positions))[1]
        positions = positions[scores[positions] * predicted[positions] > 0]
        return positions, predicted[positions]
    return one_sign(scores, residual, count)


def message(client, density, idea, step):
    sent = []
    for i, count in enumerate(planned_counts(client, density, idea)):
        positions, signs = choose(client, i, count, idea, step)
        values = signs * (client.residual[i][positions] * signs).mean() if len(positions) else signs
        client.settle(i, positions, values, idea)
        sent.append((positions, values))
    return sent


def agreement(dense):
    """Of the updates of a tensor, as in imputed_mean.h; None where no element was sent twice."""
    same, most = 0.0, 0.0
    for i, a in enumerate(dense):
        for b in dense[:i]:
            both = (a != 0) & (b != 0)
            same += (2 * a[both] * b[both]).sum().item()
            most += (a[both].square() + b[both].square()).sum().item()
    return same / most if most else None


def imputed_mean(messages, sizes):
    tensors = []
    for i, size in enumerate(sizes):
        dense = [torch.zeros(size).index_add_(0, *sent[i]) for sent in messages]
        tensors.append(dense)
    seen = [a for a in map(agreement, tensors) if a is not None]
    trust = max(0.0, 2 * statistics.mean(max(0.0, a) for a in seen) - 1) if seen else 0.0
    steps = []
    for dense in tensors:
        total, senders = sum(dense), sum((d != 0).float() for d in dense)
        factor = (1 + trust * (CLIENTS - senders) / senders.clamp(min=1)).clamp(max=4)
        steps.append(total / CLIENTS * factor)
    return steps


def share_buffers(clients):
    """Running statistics of BatchNorm are averaged, as model.buffers = 'averaged' does."""
    with torch.no_grad():
        for group in zip(*(client.net.buffers() for client in clients)):
            if group[0].is_floating_point():
                mean = sum(group) / CLIENTS
                for buffer in group:
                    buffer.copy_(mean)


def run(task_class, data, idea, seed):
    torch.manual_seed(seed)
    task = task_class(data, seed)
    clients = []
    for index in range(CLIENTS):
        torch.manual_seed(seed)  # the same start for all
        clients.append(Client(task, task.model(), index))
    model = [p.detach().view(-1).clone() for p in clients[0].net.parameters()]
    step = None
    for _ in range(task.rounds):
        messages = []
        for client in clients:
            deltas = client.train(model)
            if idea == "dct":
                deltas = [dct(d, p.shape) for d, p in zip(deltas, client.parameters)]
            client.take_up(deltas, idea)
            messages.append(message(client, task.density, idea, step))
        step = imputed_mean(messages, [w.numel() for w in model])
        if idea == "rate":
            step = [2 * s for s in step]
        if idea == "dct":
            step = [dct(s, p.shape, back=True) for s, p in zip(step, clients[0].parameters)]
        model = [w + s for w, s in zip(model, step)]
        share_buffers(clients)
    net = clients[0].net
    set_parameters(net, model)
    net.eval()
    with torch.no_grad():
        return task.evaluate(net)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("data")
    parser.add_argument("--ideas", default=",".join(IDEAS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--json", help="file that gets a line for every run")
    args = parser.parse_args()
    unknown = set(args.ideas.split(",")) - set(IDEAS)
    if unknown:
        parser.error(f"unknown ideas: {', '.join(sorted(unknown))}; there are {', '.join(IDEAS)}")
    torch.set_flush_denormal(True)
    task = TASKS[args.task]
    print(f"| idea | {task.figure}, mean | by seed |\n|---|---|---|", flush=True)
    for idea in args.ideas.split(","):
        ends = []
        for seed in map(int, args.seeds.split(",")):
            ends.append(run(task, args.data, idea, seed))
            if args.json:
                with open(args.json, "a") as file:
                    print(json.dumps({"task": args.task, "idea": idea, "seed": seed, "end": ends[-1]}), file=file)
        print(f"| {idea} | {statistics.mean(ends):.4f} | {', '.join(f'{end:.4f}' for end in ends)} |", flush=True)


if __name__ == "__main__":
    main()

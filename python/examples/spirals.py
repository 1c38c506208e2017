"""The model and the data of the quickstart: points on the arms of three spirals, of which each client has its own."""

import math

import torch


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                               torch.nn.Linear(64, 3))


def make_data(seed, points=1500):
    generator = torch.Generator().manual_seed(seed)
    arm = torch.randint(3, (points,), generator=generator)
    along = torch.rand(points, generator=generator)
    angle = 3 * math.pi * along + 2 * math.pi / 3 * arm + 0.15 * torch.randn(points, generator=generator)
    return torch.stack([along * angle.cos(), along * angle.sin()], dim=1), arm

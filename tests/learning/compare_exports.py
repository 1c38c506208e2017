"""Opens the files that Terse exported of some models: compare_exports.py FOLDER NAME...

Of each model the folder has NAME.pt, NAME.npz and NAME.safetensors with the same tensors, and NAME.check.npz with an
input x and the output y that the model has for it; of a model of texts also NAME.vocabulary.json, and NAME.txt, whose
first characters are x. Exits with 1 and a message when something is wrong. Needs
python3-torch and python3-numpy.
"""

import json
import os
import struct
import sys

import numpy as np
import torch


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    header.pop("__metadata__", None)  # which tensors are buffers
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def output(model, x):
    if hasattr(model, "initial_state"):
        return model(x.long(), model.initial_state(len(x)))[0]
    return model(x)


def compare(stem):
    model = torch.jit.load(stem + ".pt")
    if model.training:
        sys.exit(f"{stem}.pt is not in evaluation mode")
    script = {name: tensor.detach().numpy() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
    arrays = dict(np.load(stem + ".npz"))
    safe = read_safetensors(stem + ".safetensors")
    if list(arrays) != list(safe):
        sys.exit(f"{stem}: .npz has {list(arrays)}, .safetensors {list(safe)}")
    for name, array in arrays.items():
        for other in (safe[name], script[name]):
            if array.shape != other.shape or not np.array_equal(array, other):
                sys.exit(f"{stem}: {name} differs from file to file")
    check = np.load(stem + ".check.npz")
    with torch.no_grad():
        y = output(model, torch.from_numpy(check["x"])).numpy()
    if y.shape != check["y"].shape or not np.allclose(y, check["y"], rtol=1e-4, atol=1e-5):
        sys.exit(f"{stem}: the output is {y}, not {check['y']}")
    if os.path.exists(stem + ".vocabulary.json"):
        check_vocabulary(stem, check["x"].astype(int).flatten(), y)


def check_vocabulary(stem, x, y):
    with open(stem + ".vocabulary.json", encoding="utf-8") as file:
        symbols = json.load(file)
    with open(stem + ".txt", encoding="utf-8", newline="") as file:
        text = file.read()
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    if len(symbols) != y.shape[-1] or set(text) != set(symbols):
        sys.exit(f"{stem}: the symbols {symbols} are not those of the model and the text")
    if [numbers[symbol] for symbol in text[: len(x)]] != list(x):
        sys.exit(f"{stem}: the text is not what the model was given")
    if "".join(symbols[number] for number in x) != text[: len(x)]:
        sys.exit(f"{stem}: the numbers do not give the text back")


torch.set_num_threads(1)
folder, *names = sys.argv[1:]
for name in names:
    compare(f"{folder}/{name}")
print("opened", *names)

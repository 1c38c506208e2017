"""Opens what a run of Terse exported, and checks that it is one model that does what the coordinator says.

usage: check_result.py DIR

DIR holds model.pt, model.safetensors, model.npz and summary.json of `tersectl export`, and data/test.npz. The three
files must hold the same weights to the bit, and the model's accuracy and loss on the test data must be those of the
summary. Prints the accuracy; exits with 1 and a message when something is wrong. Needs python3-torch and python3-numpy.
"""

import json
import os
import sys

import numpy
import torch

LEAST_ACCURACY = 0.8  # four classes: guessing gives 0.25


def torchscript_tensors(model):
    named = list(model.named_parameters()) + list(model.named_buffers())
    return {name: tensor.detach().numpy() for name, tensor in named if tensor.dtype == torch.float32}


def safetensors_tensors(path):
    """The format is a length, a JSON header and the values, so that no package is needed to read it."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = file.read()
    tensors = {}
    header.pop("__metadata__", None)  # which tensors are buffers
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(values[begin:end], dtype="<f4").reshape(entry["shape"])
    return tensors


def check_same(expected, found, name):
    if set(expected) != set(found):
        sys.exit(f"{name}: other tensors than in model.pt: {sorted(set(expected) ^ set(found))}")
    for tensor, values in expected.items():
        if values.shape != found[tensor].shape or values.tobytes() != found[tensor].tobytes():
            sys.exit(f"{name}: {tensor} is not the one of model.pt")


def check_scores(model, test, summary):
    x, y = torch.from_numpy(test["x"]), torch.from_numpy(test["y"])
    with torch.no_grad():
        logits = model(x)
    accuracy = (logits.argmax(1) == y).double().mean().item()
    loss = torch.nn.functional.cross_entropy(logits, y).item()
    # Batches of another size round differently: that may turn one close decision.
    if abs(accuracy - summary["accuracy"]) > 1.5 / len(y) or abs(loss - summary["loss"]) > 1e-4 * loss:
        told = f"{summary['accuracy']} and {summary['loss']}"
        sys.exit(f"accuracy and loss are {accuracy} and {loss} here, {told} in the summary")
    if accuracy < LEAST_ACCURACY:
        sys.exit(f"accuracy {accuracy}: the model has learned less than {LEAST_ACCURACY}")
    return accuracy


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = arguments[0]
    model = torch.jit.load(os.path.join(folder, "model.pt"))
    tensors = torchscript_tensors(model)
    check_same(tensors, safetensors_tensors(os.path.join(folder, "model.safetensors")), "model.safetensors")
    check_same(tensors, dict(numpy.load(os.path.join(folder, "model.npz"))), "model.npz")
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    accuracy = check_scores(model, numpy.load(os.path.join(folder, "data", "test.npz")), summary)
    weights = sum(values.size for values in tensors.values())
    print(f"model.pt, model.safetensors and model.npz hold the same {weights} weights; accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Opens a TorchScript file that Terse exported and checks that it is a digit classifier.

usage: open_export.py MODEL.pt [IMAGES LABELS]

Checks the parameters and the shape of the logits. With plain (not compressed) IDX files it also prints the accuracy, as
"accuracy 0.9906". Exits with 1 and a message when something is wrong. Needs python3-torch.
"""

import struct
import sys

import torch

PARAMETERS = {
    "conv1.weight": (20, 1, 5, 5),
    "conv1.bias": (20,),
    "conv2.weight": (50, 20, 5, 5),
    "conv2.bias": (50,),
    "ip1.weight": (500, 800),
    "ip1.bias": (500,),
    "ip2.weight": (10, 500),
    "ip2.bias": (10,),
}


def read_idx(path):
    with open(path, "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4 : 4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions :]), dtype=torch.uint8).reshape(shape)


def accuracy(model, images_path, labels_path):
    images, labels = read_idx(images_path), read_idx(labels_path)
    correct = 0
    for first in range(0, len(labels), 500):
        x = images[first : first + 500].unsqueeze(1).float() / 255
        correct += (model(x).argmax(1) == labels[first : first + 500]).sum().item()
    return correct / len(labels)


def main(arguments):
    if len(arguments) not in (1, 3):
        sys.exit(__doc__)
    model = torch.jit.load(arguments[0])
    found = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    if found != PARAMETERS:
        sys.exit(f"{arguments[0]}: unexpected parameters {found}")
    with torch.no_grad():
        logits = model(torch.rand(3, 1, 28, 28))
        if tuple(logits.shape) != (3, 10) or not torch.isfinite(logits).all():
            sys.exit(f"{arguments[0]}: unusable logits {logits}")
        print(f"opened {arguments[0]}: {sum(p.numel() for p in model.parameters())} parameters")
        if len(arguments) == 3:
            print(f"accuracy {accuracy(model, arguments[1], arguments[2]):.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])

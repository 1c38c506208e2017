"""Updates, the golden files and the table of compression/README.md, for the tests of codecs."""
import re

import numpy as np

import terse
from fleet import SOURCE

GOLDEN_KEY = {"seed": 20180522, "round": 3, "client": 1}  # as in tests/compression/golden_test.cc
NUMBERS = {"density": float, "threshold": float, "samples": float, "clip": float, "bits": int, "bucket": int, "merge_below": int}


def update(seed, shapes=None):
    """A model's update with values like those of training: most of them small."""
    random = np.random.default_rng(seed)
    shapes = shapes or {"conv.weight": (20, 5, 5), "conv.bias": (20,), "fc.weight": (60, 40)}
    return {name: (random.standard_normal(shape) ** 3 * 0.01).astype(np.float32) for name, shape in shapes.items()}


def all_codecs():
    """Every function of terse.codecs that makes a codec, called without arguments."""
    made = [function() for name, function in vars(terse.codecs).items()
            if not name.startswith("_") and getattr(function, "__module__", "") == "terse.codecs" and not isinstance(function, type)]
    return {codec.name: codec for codec in made}


def readme_settings():
    """The settings of each row of the codec table in compression/README.md."""
    text = (SOURCE / "compression" / "README.md").read_text()
    table = text[text.index("| codec | paper |"):].split("\n\n")[0].splitlines()[2:]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table]
    return {row[0].strip(" `"): {name for name in row[5].strip().split(", ") if name} for row in rows}


def codec_of(fields):
    """The codec of a line of a golden file, such as ["name=sbc", "density=0.01"]."""
    settings = dict(field.split("=", 1) for field in fields)
    name = settings.pop("name")
    return terse.codecs.Codec(name, {key: NUMBERS.get(key, str)(value) for key, value in settings.items()})


def floats_of(digits):
    """float32 numbers from the hexadecimal digits of their bits."""
    return np.array([int(one, 16) for one in digits], dtype=np.uint32).view(np.float32)


def split(flat, sizes):
    """The flat vector as tensors t0, t1, ... of these sizes."""
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return {f"t{i}": np.array(part) for i, part in enumerate(parts)}


def join(model):
    return np.concatenate([array.reshape(-1) for array in model.values()])


def same_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def golden_updates():
    """(name, codec, sizes, names of buffers, update, message, decoded) of every case with one codec and an update."""
    case = {}
    for line in [*(SOURCE / "tests/golden/compression.txt").read_text().splitlines(), "case end"]:
        if not line or line[0] == "#":
            continue
        key, *fields = line.split(" ")
        if key == "case":
            if "update" in case and len(case["codec"]) == 1:
                sizes, count = case["layout"]
                buffers = [f"t{i}" for i in range(len(sizes) - count, len(sizes))]
                yield (case["name"], codec_of(case["codec"][0]), sizes, buffers, floats_of(case["update"]),
                       bytes.fromhex(case["message"][0]), floats_of(case["decoded"]))
            case = {"name": fields[0], "codec": [], "message": []}
        elif key == "codec":
            case["codec"].append(fields)
        elif key == "layout":
            at = fields.index("buffers") if "buffers" in fields else len(fields)
            case["layout"] = [int(n) for n in fields[:at] + fields[at + 1:]], max(0, len(fields) - at - 1)
        elif key == "message":
            case["message"].append(fields[0])
        else:
            case[key] = fields


def golden_packed():
    """The steps of tests/golden/packed_messages.txt as (kind, value): a case's (codec, like, buffers), then bytes."""
    codecs, like, buffers = [], {}, []
    for line in (SOURCE / "tests/golden/packed_messages.txt").read_text().splitlines():
        if not line or line[0] == "#":
            continue
        key, *fields = line.split(" ")
        if key == "case":
            codecs, like, buffers = [], {}, []
        elif key == "codec":
            codecs.append(codec_of(fields))
        elif key == "layout":
            like = {f"t{i}": () if shape == "scalar" else tuple(map(int, shape.split("x"))) for i, shape in enumerate(fields)}
        elif key == "buffers":
            if fields[0] != "0":
                like, buffers = {**like, "buffer": (int(fields[0]),)}, ["buffer"]
            yield "case", (codecs, like, buffers)
        else:
            yield key, bytes.fromhex(fields[0])


def flipped(message, bit):
    """The message with one bit changed."""
    return bytes(byte ^ (1 << bit % 8 if i == bit // 8 else 0) for i, byte in enumerate(message))


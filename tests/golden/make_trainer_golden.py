"""A session of the trainer protocol, byte by byte as docs/TRAINER.md describes it, without Terse's own code.

usage: make_trainer_golden.py FOLDER     writes trainer_requests.bin, what the client says, and trainer_answers.bin
"""

import json
import pathlib
import struct
import sys

OPEN, MEMORY, START, TRAIN, MASK, SAVE, RESTORE = 1, 2, 3, 4, 6, 7, 8
GO_ON, SEALED, FINISHED, DONE, FAILED, PROGRESS = 9, 10, 11, 64, 65, 66


def frame(kind, body):
    data = body if isinstance(body, bytes) else json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return struct.pack("<IIQ", kind, 0, len(data)) + data


# Two tensors of 2 x 3 and 2 elements.
LAYOUT = [{"name": "layer.weight", "shape": [2, 3], "kind": "parameter"},
          {"name": "norm.running_mean", "shape": [2], "kind": "buffer"}]
REQUESTS = [
    (OPEN, {"protocol": 1, "run": "demo", "model": "external", "seed": 5, "shard": {"index": 1, "count": 4}, "rounds": 100,
            "local_steps": 20, "batch_size": 128, "buffers": "averaged", "momentum_masking": True,
            "role": "trainer"}),
    (MEMORY, {"elements": 8, "bytes": 96}),
    (RESTORE, b"state of round 6"),
    (START, {}),
    (TRAIN, {"steps": 20, "first_iteration": 140, "round": 8, "version": 7}),
    (GO_ON, {"go_on": True}),
    (MASK, struct.pack("<2q", 0, 5)),
    (SAVE, b""),
    (SEALED, {"round": 8}),
    (FINISHED, {"reason": "all rounds are done"}),
]
ANSWERS = [
    (DONE, {"protocol": 1, "trainer": "example 1.0", "layout": LAYOUT, "dtype": "float32", "samples": 500, "device": "cpu",
            "result": "weights", "in_place": False, "has_start": True, "has_state": True, "has_momentum": True}),
    (DONE, {}),
    (DONE, {}),
    (DONE, {"has_weights": True}),
    (PROGRESS, {"steps": 10}),
    (DONE, {"loss": 0.75, "samples": 2560,
            "metrics": [{"kind": "evaluation", "name": "accuracy", "value": 0.5, "samples": 500}]}),
    (DONE, {}),
    (DONE, b"state of round 8"),
]

folder = pathlib.Path(sys.argv[1])
(folder / "trainer_requests.bin").write_bytes(b"".join(frame(*each) for each in REQUESTS))
(folder / "trainer_answers.bin").write_bytes(b"".join(frame(*each) for each in ANSWERS))

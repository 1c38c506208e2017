"""A run that Python describes: its run file, and the model's layout and start weights."""

import copy
import json
import os
import struct
import subprocess
from typing import Any, Dict, Mapping, Optional

import numpy as np

from . import _models
from ._client import find_program
from .codecs import Codec
from .errors import RunMismatch, TerseError

RUN_FILE, START_FILE = "run.toml", "start.safetensors"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # a basic string of TOML
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(element) for element in value) + "]"
    raise TerseError(f"a run file holds strings, numbers, booleans and lists of them, not {type(value).__name__}")


def _dotted(keys: Mapping[str, Any]) -> Dict[str, Any]:
    """The keys of a table, and those of the tables in it as `table.key`."""
    flat: Dict[str, Any] = {}
    for key, value in keys.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": each for inner, each in _dotted(value).items()})
        else:
            flat[key] = value
    return flat


class Run:
    """A run of a model that the clients' own trainers know.

    name: letters, digits, '-', '_' and '.'. model: a torch.nn.Module or a mapping of NumPy arrays, as for Fleet.rounds; its
    present values are the ones that the run starts from. codec: how clients send updates (terse.codecs). rounds, clients,
    local_steps: as in the run file. seed: of everything that is drawn. settings: further tables of the run file
    (docs/RUN_FILE.md), such as {"rounds": {"deadline_seconds": 60}}; they win over the arguments.
    """

    def __init__(self, name: str, *, model, codec: Codec, rounds: int, clients: int, local_steps: int = 1, seed: int = 1,
                 settings: Optional[Mapping[str, Mapping[str, Any]]] = None):
        if not isinstance(codec, Codec):
            raise RunMismatch(f"the codec is {codec!r}; give one of terse.codecs, such as terse.codecs.sbc(density=0.01)")
        self.name = name
        self._model = _models.adapt(model)
        self._tables = {
            "model": {"name": "external"},
            "data": {"name": "external", "partition": "all"},  # each client has data of its own
            # The learning rate is without effect: the trainers have optimizers of their own.
            "train": {"local_steps": local_steps, "optimizer.learning_rate": 1.0},
            "codec": {"name": codec.name, **codec.settings},
            "rounds": {"count": rounds, "clients": clients},
        }
        self._top = {"name": name, "seed": seed}
        for table, keys in (settings or {}).items():
            if isinstance(keys, Mapping):
                self._tables.setdefault(table, {}).update(_dotted(keys))
            else:
                self._top[table] = keys

    def for_shards(self) -> "Run":
        """The same run for clients that are told their number, as the shard of the data that is theirs."""
        other = copy.copy(self)
        other._tables = {**self._tables, "data": {**self._tables["data"], "partition": "iid"}}
        return other

    def to_toml(self) -> str:
        """The run file."""
        lines = [f"{key} = {_toml(value)}" for key, value in self._top.items()]
        for table, keys in self._tables.items():
            lines += ["", f"[{table}]"] + [f"{key} = {_toml(value)}" for key, value in keys.items()]
        return "\n".join(lines) + "\n"

    def start_file(self) -> bytes:
        """The model's layout and start weights, as a safetensors file."""
        entries = self._model.entries()
        flat = np.empty(sum(entry.size for entry in entries), dtype="<f4")
        self._model.store(flat)
        header, offset = {}, 0
        buffers = [entry.name for entry in entries if entry.kind == "buffer"]
        if buffers:
            header["__metadata__"] = {"terse.buffers": "\n".join(buffers)}
        for entry in entries:
            header[entry.name] = {"dtype": "F32", "shape": list(entry.shape),
                                  "data_offsets": [offset, offset + 4 * entry.size]}
            offset += 4 * entry.size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + flat.tobytes()

    def save(self, folder: str) -> None:
        """Writes run.toml and start.safetensors, for `tersectl run create --run-file run.toml --model start.safetensors`."""
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, RUN_FILE), "w", encoding="utf-8") as file:
            file.write(self.to_toml())
        with open(os.path.join(folder, START_FILE), "wb") as file:
            file.write(self.start_file())

    def create(self, folder: str, *, admin: str) -> None:
        """Saves the run in a folder and has a coordinator serve it. admin: the address of its admin service.

        Raises TerseError with the coordinator's words when it refuses the run.
        """
        self.save(folder)
        command = [find_program("tersectl"), "--admin", admin, "run", "create", "--run-file",
                   os.path.join(folder, RUN_FILE), "--model", os.path.join(folder, START_FILE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TerseError((done.stderr or done.stdout).strip())

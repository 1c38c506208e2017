"""The clients' end of agreed weights (_agreed.py): the weights, the residual and the update that waits for its verdict,
in a folder.

The folder has one small file `manifest`, which is replaced atomically and names the others, `weights` and `memory` (the
codec's feedback: the residual and a pending message). Those are immutable, and on the disk before the manifest names
them.
"""

import fcntl
import hashlib
import json
import logging
import math
import os
import pathlib
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from ._agreed import (
    KEY_BYTES,
    PROTOCOL,
    UPDATE_BYTES,
    Arrays,
    Fields,
    add,
    buffers_of,
    check_like,
    codec_from_text,
    coded_part,
    fingerprint,
    seed_of,
    whole_part,
)
from ._coding import Feedback
from .errors import ClientError, RunMismatch

_log = logging.getLogger("terse")
_FORMAT = 1


class WeightsNeeded(RunMismatch):
    """This client cannot follow the steps that it was sent, and needs the weights themselves."""


def _sync_folder(folder: pathlib.Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Folder:
    """The files, and the lock that makes one process at a time the client."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = open(path / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise ClientError(f"another process uses {path}; give every client a folder of its own") from error

    def close(self) -> None:
        self._lock.close()

    def read(self) -> Optional[Dict[str, Any]]:
        """The manifest; None where there is none. Raises ClientError for a damaged one."""
        try:
            text = (self._path / "manifest").read_bytes()
        except FileNotFoundError:
            return None
        digest, _, body = text.partition(b"\n")
        if hashlib.blake2b(body).hexdigest().encode() != digest:
            raise ClientError(
                f"{self._path / 'manifest'} is damaged; remove the folder, and this client starts without a residual"
            )
        manifest = json.loads(body)
        if manifest["format"] != _FORMAT:
            raise ClientError(
                f"{self._path} is of format {manifest['format']}, and this release reads {_FORMAT}; remove the folder"
            )
        return manifest

    def load(self, entry: Mapping[str, str]) -> bytes:
        data = (self._path / entry["file"]).read_bytes()
        if hashlib.blake2b(data).hexdigest() != entry["hash"]:
            raise ClientError(
                f"{self._path / entry['file']} is damaged; remove the folder, and this client starts without a residual"
            )
        return data

    def store(self, what: str, data: bytes) -> Dict[str, str]:
        """Writes a new file, and returns how the manifest names it."""
        name = f"{what}-{os.urandom(6).hex()}"
        self._write(name, data)
        return {"file": name, "hash": hashlib.blake2b(data).hexdigest()}

    def commit(self, manifest: Dict[str, Any]) -> None:
        """Makes the manifest the folder's, and removes the files that it does not name."""
        body = json.dumps(manifest).encode()
        self._write("manifest.new", hashlib.blake2b(body).hexdigest().encode() + b"\n" + body)
        _sync_folder(self._path)
        os.replace(self._path / "manifest.new", self._path / "manifest")
        _sync_folder(self._path)
        kept = {"manifest", "lock"} | {entry["file"] for entry in manifest["files"].values()}
        for file in self._path.iterdir():
            if file.name not in kept:
                file.unlink()

    def _write(self, name: str, data: bytes) -> None:
        with open(self._path / name, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


class AgreedClient:
    """One client, whose state is in a folder; a context manager. Not thread-safe.

    A message is answered in two steps: `receive` gives the weights and changes nothing on the disk, and `seal` (with what
    was learned) or `acknowledge` (without) makes the state durable and gives the reply. Between them the process may die.
    """

    def __init__(self, folder):
        self._folder = _Folder(pathlib.Path(folder))
        try:
            self._state = self._folder.read()
        except BaseException:
            self._folder.close()
            raise
        self._message: Mapping[str, Any] = {}
        self._weights: Arrays = {}
        self._memory: Optional[Feedback] = None

    def __enter__(self) -> "AgreedClient":
        return self

    def __exit__(self, *_) -> None:
        self._folder.close()

    def receive(self, fields: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Arrays:
        """The agreed weights that a message leads to.

        Raises WeightsNeeded when only the weights themselves help, and RunMismatch for a message that was answered
        already.
        """
        if fields["protocol"] != PROTOCOL:
            raise RunMismatch(
                f"the server speaks version {fields['protocol']} of this protocol, and this client {PROTOCOL}; install "
                "releases that fit each other"
            )
        state = self._state
        if state is not None and state["lineage"] != fields["lineage"].hex():
            _log.warning("the server began a new training; what this client had learned and not sent is dropped")
            state = None
        if state is not None and fields["sequence"] <= state["sequence"]:
            raise RunMismatch(
                f"message {fields['sequence']} was answered already, or a newer one was; it is not answered twice"
            )
        if fields["for"] and (state is None or fields["for"].hex() != state["key"]):
            raise WeightsNeeded("the server takes this client for another one, whose state is not here")
        self._weights = self._follow(state, fields, arrays)
        if fingerprint(self._weights) != fields["hash"]:
            raise WeightsNeeded(f"the weights do not have the hash of version {fields['version']}")
        self._state = state or {"key": os.urandom(KEY_BYTES).hex(), "number": None, "applied": None, "files": {}}
        self._message = fields
        self._recall(fields)
        return self._weights

    def seal(self, weights: Mapping[str, np.ndarray]) -> Tuple[Fields, Arrays]:
        """Makes an update of what was learned durable. Returns the reply: its fields, and the tensors that travel as they
        are.

        Raises CodecError when there are values that are not finite; then nothing of the round is kept.
        """
        check_like(weights, self._weights, "the result")
        delta = {name: weights[name] - array for name, array in coded_part(self._weights).items()}
        change = self._memory.compress(delta, round=self._message["version"] - 1)
        number = os.urandom(UPDATE_BYTES)
        self._commit(number, self._folder.store("memory", self._memory.state()))
        return {**self._reply(), "number": number, "change": change}, whole_part(weights)

    def acknowledge(self) -> Fields:
        """Makes the weights durable, and returns the reply's fields."""
        self._commit(None, self._state["files"].get("memory") or self._folder.store("memory", self._memory.state()))
        return self._reply()

    def _follow(self, state, fields, arrays) -> Arrays:
        """The weights of the message's version."""
        if "steps" not in fields:
            return {name: np.array(array) for name, array in arrays.items()}
        if state is None:
            raise WeightsNeeded("the server sent steps, and there are no weights here to start from")
        missed = fields["version"] - state["version"]
        if missed < 0 or missed > len(fields["steps"]):
            raise WeightsNeeded(
                f"the server sent {len(fields['steps'])} steps to version {fields['version']}, and here is version "
                f"{state['version']}"
            )
        weights = self._load_weights(state)
        coded = coded_part(weights)
        buffers = buffers_of(coded, fields["buffers"])
        for message in fields["steps"][len(fields["steps"]) - missed :]:
            coded = add(coded, codec_from_text(fields["down"]).decode(message, coded, buffers=buffers))
        return {name: coded.get(name, arrays.get(name, array)) for name, array in weights.items()}

    def _load_weights(self, state) -> Arrays:
        data, weights, offset = self._folder.load(state["files"]["weights"]), {}, 0
        for name, dtype, shape in state["layout"]:
            array = np.frombuffer(data, dtype, math.prod(shape), offset).reshape(shape)
            weights[name], offset = array.copy(), offset + array.nbytes
        return weights

    def _recall(self, fields) -> None:
        """Sets the memory, with the verdict about the update that waits for one; nothing is written."""
        state, coded = self._state, coded_part(self._weights)
        self._memory = codec_from_text(fields["up"]).feedback(
            coded,
            seed=seed_of(fields["lineage"]),
            client=seed_of(bytes.fromhex(state["key"])),
            buffers=buffers_of(coded, fields["buffers"]),
        )
        if "memory" in state["files"]:
            self._memory.restore(self._folder.load(state["files"]["memory"]))
        pairs, size = fields["settled"], KEY_BYTES + UPDATE_BYTES
        settled = {
            pairs[at : at + KEY_BYTES].hex(): pairs[at + KEY_BYTES : at + size].hex() for at in range(0, len(pairs), size)
        }
        applied, files = settled.get(state["key"]), dict(state["files"])
        if applied != state["applied"] and (state["number"] is None or applied != state["number"]):
            _log.warning(
                "the server has applied an update that this folder does not know, as if it had been set back; "
                "a residual of norm %.3g is dropped",
                self._memory.reset(),
            )
            files.pop("memory", None)
        elif state["number"] is not None:
            self._memory.settle(applied=applied == state["number"])
            files.pop("memory", None)
        self._state = {**state, "number": None, "applied": applied, "files": files}

    def _commit(self, number: Optional[bytes], memory: Dict[str, str]) -> None:
        message = self._message
        weights = self._state["files"].get("weights")
        if weights is None or self._state["hash"] != message["hash"].hex():
            data = b"".join(np.ascontiguousarray(array).tobytes() for array in self._weights.values())
            weights = self._folder.store("weights", data)
        self._state = {
            "format": _FORMAT,
            "lineage": message["lineage"].hex(),
            "sequence": message["sequence"],
            "version": message["version"],
            "hash": message["hash"].hex(),
            "layout": [[name, array.dtype.str, list(array.shape)] for name, array in self._weights.items()],
            "key": self._state["key"],
            "applied": self._state["applied"],
            "number": None if number is None else number.hex(),
            "files": {"weights": weights, "memory": memory},
        }
        self._folder.commit(self._state)

    def _reply(self) -> Fields:
        return {
            "lineage": self._message["lineage"],
            "sequence": self._message["sequence"],
            "version": self._message["version"],
            "key": bytes.fromhex(self._state["key"]),
        }

"""The clients' end of agreed weights (_agreed.py): the weights, the residual and the update that waits for its verdict, in a folder.

The folder has one small file `manifest`, which is replaced atomically and names the others. They are immutable: `weights`, `left` (the residual
if the newest update is applied) and `all` (the residual if it is not). Every file is on the disk before the manifest names it.
"""

import fcntl
import hashlib
import json
import logging
import os
import pathlib
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from ._agreed import (KEY_BYTES, PROTOCOL, UPDATE_BYTES, Arrays, Fields, add, check_like, codec_from_text, compressed_part, fingerprint,
                      whole_part)
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
            raise ClientError(f"{self._path / 'manifest'} is damaged; remove the folder, and this client starts without a residual")
        manifest = json.loads(body)
        if manifest["format"] != _FORMAT:
            raise ClientError(f"{self._path} is of format {manifest['format']}, and this release reads {_FORMAT}; remove the folder")
        return manifest

    def load(self, entry: Mapping[str, str], like: Arrays) -> Arrays:
        """The arrays of a file, in the shapes and types of others."""
        data = (self._path / entry["file"]).read_bytes()
        if hashlib.blake2b(data).hexdigest() != entry["hash"]:
            raise ClientError(f"{self._path / entry['file']} is damaged; remove the folder, and this client starts without a residual")
        arrays, offset = {}, 0
        for name, array in like.items():
            arrays[name] = np.frombuffer(data, array.dtype, array.size, offset).reshape(array.shape).copy()
            offset += array.nbytes
        return arrays

    def store(self, what: str, arrays: Arrays) -> Dict[str, str]:
        """Writes a new file, and returns how the manifest names it."""
        data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
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

    A message is answered in two steps: `receive` gives the weights and changes nothing on the disk, and `seal` (with what was learned)
    or `acknowledge` (without) makes the state durable and gives the reply. Between them the process may die.
    """

    def __init__(self, folder):
        self._folder = _Folder(pathlib.Path(folder))
        try:
            self._state = self._folder.read()
        except BaseException:
            self._folder.close()
            raise
        self._message: Mapping[str, Any] = {}
        self._weights: Optional[Arrays] = None
        self._residual: Optional[Arrays] = None

    def __enter__(self) -> "AgreedClient":
        return self

    def __exit__(self, *_) -> None:
        self._folder.close()

    def receive(self, fields: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Arrays:
        """The agreed weights that a message leads to.

        Raises WeightsNeeded when only the weights themselves help, and RunMismatch for a message that was answered already.
        """
        if fields["protocol"] != PROTOCOL:
            raise RunMismatch(f"the server speaks version {fields['protocol']} of this protocol, and this client {PROTOCOL}; install "
                              "releases that fit each other")
        state = self._state
        if state is not None and state["lineage"] != fields["lineage"].hex():
            self._report_loss("the server began a new training", self._read_residual(state, "left"))
            state = None
        if state is not None and fields["sequence"] <= state["sequence"]:
            raise RunMismatch(f"message {fields['sequence']} was answered already, or a newer one was; it is not answered twice")
        if fields["for"] and (state is None or fields["for"].hex() != state["key"]):
            raise WeightsNeeded("the server takes this client for another one, whose state is not here")
        self._weights = self._follow(state, fields, arrays)
        if fingerprint(self._weights) != fields["hash"]:
            raise WeightsNeeded(f"the weights do not have the hash of version {fields['version']}")
        compressed = compressed_part(self._weights, fields["whole"])
        self._state = self._settle(state, fields) or {"key": os.urandom(KEY_BYTES).hex(), "number": None, "applied": None, "files": {}}
        self._residual = self._read_residual(self._state, "left", compressed)
        self._message = fields
        return self._weights

    def seal(self, weights: Mapping[str, np.ndarray]) -> Tuple[Fields, Arrays]:
        """Makes an update of what was learned durable. Returns the reply: its fields, and the tensors that travel as they are."""
        check_like(weights, self._weights, "the result")
        compressed = compressed_part(self._weights, self._message["whole"])
        everything = {}
        for name, array in compressed.items():
            everything[name] = self._residual[name] + (weights[name] - array)
            if not np.isfinite(everything[name]).all():
                raise RunMismatch(f"training left values of '{name}' that are not finite; nothing of this round is kept")
        left = {name: np.zeros_like(array) for name, array in compressed.items()}
        change = codec_from_text(self._message["up"]).encode(everything, left)
        number = os.urandom(UPDATE_BYTES)
        self._commit(number, {"left": self._folder.store("left", left), "all": self._folder.store("all", everything)})
        return ({**self._reply(), "number": number, "change": change},
                {name: np.asarray(weights[name]) for name in whole_part(self._weights, self._message["whole"])})

    def acknowledge(self) -> Fields:
        """Makes the weights durable, and returns the reply's fields."""
        self._commit(None, {"left": entry for name, entry in self._state["files"].items() if name == "left"})
        return self._reply()

    def _follow(self, state, fields, arrays) -> Arrays:
        if "steps" not in fields:
            return {name: np.array(array) for name, array in arrays.items()}
        if state is None:
            raise WeightsNeeded("the server sent steps, and there are no weights here to start from")
        missed = fields["version"] - state["version"]
        if missed < 0 or missed > len(fields["steps"]):
            raise WeightsNeeded(f"the server sent {len(fields['steps'])} steps to version {fields['version']}, and here is version "
                                f"{state['version']}")
        like = {name: np.empty(shape, dtype) for name, dtype, shape in state["layout"]}
        weights = self._folder.load(state["files"]["weights"], like)
        compressed = compressed_part(weights, fields["whole"])
        for message in fields["steps"][len(fields["steps"]) - missed:]:
            compressed = add(compressed, codec_from_text(fields["down"]).decode(message, compressed))
        return {name: compressed.get(name, arrays.get(name, array)) for name, array in weights.items()}

    def _settle(self, state, fields):
        """The state with the verdict in it about the update that waits for one; nothing is written."""
        if state is None:
            return None
        pairs = fields["settled"]
        size = KEY_BYTES + UPDATE_BYTES
        settled = {pairs[at:at + KEY_BYTES].hex(): pairs[at + KEY_BYTES:at + size].hex() for at in range(0, len(pairs), size)}
        applied = settled.get(state["key"])
        files = dict(state["files"])
        if state["number"] is not None and applied == state["number"]:
            files.pop("all", None)
        elif applied == state["applied"]:
            files["left"] = files.pop("all", files["left"])
        else:
            self._report_loss("the server has applied an update that this folder does not know, as if it had been set back",
                              self._read_residual(state, "left"))
            files = {"weights": files["weights"]}
        return {**state, "number": None, "applied": applied, "files": files}

    def _read_residual(self, state, which, compressed=None) -> Arrays:
        if compressed is None:
            like = {name: np.empty(shape, dtype) for name, dtype, shape in state["layout"]}
            compressed = compressed_part(like, state["whole"])
        if which not in state["files"]:
            return {name: np.zeros_like(array) for name, array in compressed.items()}
        return self._folder.load(state["files"][which], compressed)

    def _commit(self, number: Optional[bytes], residuals: Mapping[str, Dict[str, str]]) -> None:
        message, files = self._message, {**residuals}
        is_there = self._state.get("hash") == message["hash"].hex() and "weights" in self._state["files"]
        files["weights"] = self._state["files"]["weights"] if is_there else self._folder.store("weights", self._weights)
        self._state = {**self._state, "format": _FORMAT, "lineage": message["lineage"].hex(), "sequence": message["sequence"],
                       "version": message["version"], "hash": message["hash"].hex(), "whole": list(message["whole"]), "files": files,
                       "layout": [[name, array.dtype.str, list(array.shape)] for name, array in self._weights.items()],
                       "number": None if number is None else number.hex()}
        self._folder.commit(self._state)

    def _reply(self) -> Fields:
        return {"lineage": self._message["lineage"], "sequence": self._message["sequence"], "version": self._message["version"],
                "key": bytes.fromhex(self._state["key"])}

    def _report_loss(self, why: str, residual: Arrays) -> None:
        norm = float(np.sqrt(sum(float(np.square(array, dtype=np.float64).sum()) for array in residual.values())))
        _log.warning("%s; a residual of norm %.3g is dropped", why, norm)

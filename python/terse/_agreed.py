"""Weights that a server and its clients agree on, where compressed differences travel in place of weights. This is the
server's end.

It knows no network: messages are fields (a mapping from names to integers, strings, bytes and lists of bytes) and arrays,
and terse.flower carries them. One object of AgreedServer stands for one training; _agreed_client.py has the clients' end.

Down: the weights have a version, which every step raises by one. A step is a message of a codec, which both ends decode
and add with the same operations in the same order. A client is sent the steps since the version that it has last
reported, or the weights themselves where it has none, or where they are shorter; then it compares a hash of 128 bits.

Up: a client sends what the codec's feedback makes of its residual and what it has learned, under a number that it draws,
and keeps that pending. Every later message of the server names the newest update of this client that has been applied
(`settled`). By that the client tells: applied, and its residual is what the message did not carry; not applied, and all
of it comes back; neither, as when its folder was set back to an older copy, and the residual is dropped, since part of it
may be in the weights already.
"""

import collections
import fnmatch
import hashlib
import json
import os
from typing import Any, Dict, Hashable, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._coding import Feedback
from .codecs import Codec
from .errors import RunMismatch

Arrays = Dict[str, np.ndarray]
Fields = Dict[str, Any]

PROTOCOL = 1
KEY_BYTES, UPDATE_BYTES, HASH_BYTES = 16, 8, 16
# Averaged and not trained: a codec could make a variance negative.
BUFFERS = ("*running_mean", "*running_var")


def fingerprint(arrays: Mapping[str, np.ndarray]) -> bytes:
    """A hash of names, types, shapes and values."""
    hashed = hashlib.blake2b(digest_size=HASH_BYTES)
    for name, array in arrays.items():
        hashed.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.digest()


def coded_part(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Those that go through a codec: float32, and not empty."""
    return {name: array for name, array in arrays.items() if array.dtype == np.float32 and array.size > 0}


def whole_part(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Those that travel as they are."""
    coded = coded_part(arrays)
    return {name: array for name, array in arrays.items() if name not in coded}


def buffers_of(arrays: Mapping[str, np.ndarray], patterns: Sequence[str]) -> List[str]:
    """The names that match a pattern, whose change a codec carries exactly."""
    return [name for name in arrays if any(fnmatch.fnmatchcase(name, one) for one in patterns)]


def add(arrays: Mapping[str, np.ndarray], change: Mapping[str, np.ndarray]) -> Arrays:
    """The same values on every machine: one rounding an element."""
    return {name: array + change[name] if name in change else array for name, array in arrays.items()}


def check_like(arrays: Mapping[str, np.ndarray], like: Mapping[str, np.ndarray], whose: str) -> None:
    """Raises RunMismatch unless names, shapes and types are the same."""
    if set(arrays) != set(like):
        raise RunMismatch(f"{whose} has other tensors: {sorted(set(arrays) ^ set(like))[:5]}")
    for name, array in arrays.items():
        if array.shape != like[name].shape or array.dtype != like[name].dtype:
            raise RunMismatch(
                f"{whose} has '{name}' as {array.dtype}{list(array.shape)}, where the model has "
                f"{like[name].dtype}{list(like[name].shape)}"
            )


def seed_of(key: bytes) -> int:
    """For the draws of stochastic codecs."""
    return int.from_bytes(key[:8], "little")


def codec_to_text(codec: Codec) -> str:
    return json.dumps([codec.name, codec.settings], separators=(",", ":"))


def codec_from_text(text: str) -> Codec:
    name, settings = json.loads(text)
    return Codec(name, settings)


def _bytes_of(fields: Mapping[str, Any], name: str, size: int) -> bytes:
    value = fields.get(name)
    if not isinstance(value, bytes) or len(value) != size:
        raise RunMismatch(f"a reply needs {size} bytes as '{name}'")
    return value


class Update(NamedTuple):
    """What a client has handed in: `weights` as if it had sent them, and what AgreedServer.settle needs."""

    weights: Arrays
    key: bytes
    number: bytes


class _Node(NamedTuple):
    key: bytes
    version: int


class AgreedServer:
    """The server's end. Not thread-safe.

    up: codec of the clients' updates. down: codec of the model's change; None: the weights themselves travel down.
    buffers: patterns of names (fnmatch) of tensors whose change both codecs carry exactly. Tensors that are not float32
    travel as they are.
    """

    def __init__(self, up: Codec, down: Optional[Codec], buffers: Sequence[str] = BUFFERS):
        self._up, self._down, self._patterns = up, down, list(buffers)
        self._lineage = os.urandom(KEY_BYTES)
        self._version, self._sequence = 0, 0
        self._weights: Optional[Arrays] = None
        self._hash = b""
        self._memory: Optional[Feedback] = None  # the server's own residual
        self._steps: collections.deque = collections.deque()  # messages; the last one leads to _version
        self._nodes: Dict[Hashable, _Node] = {}
        self._asked: Dict[Hashable, int] = {}  # the newest sequence number that a node was sent
        self._applied: Dict[bytes, bytes] = {}  # by client key, its newest update that was applied

    @property
    def weights(self) -> Optional[Arrays]:
        """The weights that the clients of the newest version hold."""
        return self._weights

    @property
    def version(self) -> int:
        return self._version

    def residual(self) -> Arrays:
        """What of the steps the codec has not carried yet, of the tensors that go through it."""
        if self._memory is None:
            return {name: np.zeros_like(array) for name, array in coded_part(self._weights).items()}
        return self._memory.residual

    def agree(self, weights: Mapping[str, np.ndarray]) -> None:
        """Takes other weights than a step has led to, such as those that training starts from; they will travel whole."""
        weights = {name: np.array(array) for name, array in weights.items()}
        if self._weights is not None and fingerprint(weights) == self._hash:
            return
        self._steps.clear()
        if self._down is not None:
            coded = coded_part(weights)
            self._memory = self._down.feedback(coded, seed=seed_of(self._lineage), buffers=buffers_of(coded, self._patterns))
        self._set(weights)

    def step(self, weights: Mapping[str, np.ndarray]) -> Arrays:
        """Moves towards weights as far as the codec carries; the rest joins the next step. Returns where it came to."""
        head = self._weights
        target = {name: np.asarray(weights[name]).astype(array.dtype).reshape(array.shape) for name, array in head.items()}
        if self._down is None:
            self._set(target)
            return target
        coded = coded_part(head)
        message = self._memory.compress(
            {name: target[name] - array for name, array in coded.items()}, round=self._version - 1
        )
        self._memory.settle(applied=True)
        moved = add(coded, self._down.decode(message, coded, buffers=buffers_of(coded, self._patterns)))
        self._steps.append(message)
        while sum(map(len, self._steps)) > sum(array.nbytes for array in coded.values()):
            self._steps.popleft()
        self._set({name: moved.get(name, target[name]) for name in head})
        return self._weights

    def send(self, node: Hashable) -> Tuple[Fields, Arrays]:
        """A message to a node: its fields, and the tensors that travel as they are."""
        known = self._nodes.get(node)
        self._sequence += 1
        self._asked[node] = self._sequence
        settled = self._applied if known is None else {known.key: self._applied.get(known.key)}
        fields = {
            "protocol": PROTOCOL,
            "lineage": self._lineage,
            "sequence": self._sequence,
            "version": self._version,
            "hash": self._hash,
            "up": codec_to_text(self._up),
            "buffers": self._patterns,
            "for": b"" if known is None else known.key,
            "settled": b"".join(key + number for key, number in settled.items() if number is not None),
        }
        missed = self._version - known.version if known is not None else len(self._steps) + 1
        if missed > len(self._steps):
            return fields, dict(self._weights)
        fields["steps"] = list(self._steps)[len(self._steps) - missed :]
        fields["down"] = codec_to_text(self._down) if self._down is not None else ""
        return fields, whole_part(self._weights) if missed else {}

    def hear(self, node: Hashable, fields: Mapping[str, Any]) -> None:
        """Notes the version that a node says it holds. Raises RunMismatch for an answer to something else."""
        self._nodes[node] = _Node(self._check(node, fields), self._version)

    def take(self, node: Hashable, fields: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Update:
        """Decodes a client's update. Raises RunMismatch or MalformedMessage for one that does not fit."""
        key, number = self._check(node, fields), _bytes_of(fields, "number", UPDATE_BYTES)
        check_like(arrays, whole_part(self._weights), "the update")
        coded = coded_part(self._weights)
        message = fields.get("change")
        if not isinstance(message, bytes):
            raise RunMismatch("an update needs bytes as 'change'")
        change = self._up.decode(message, coded, buffers=buffers_of(coded, self._patterns))
        weights = {**add(coded, change), **arrays}
        for name, array in weights.items():
            if not np.isfinite(array).all():
                raise RunMismatch(f"the update has values of '{name}' that are not finite")
        self._nodes[node] = _Node(key, self._version)
        return Update({name: weights[name] for name in self._weights}, key, number)

    def settle(self, updates: Iterable[Update]) -> None:
        """Notes that these are in the weights; every other one that was taken is none."""
        for update in updates:
            self._applied[update.key] = update.number

    def forget(self, node: Hashable) -> None:
        """Sends the weights themselves to this node next time."""
        self._nodes.pop(node, None)

    def _set(self, weights: Arrays) -> None:
        self._weights, self._hash = weights, fingerprint(weights)
        self._version += 1
        if self._down is None:
            self._steps.clear()

    def _check(self, node: Hashable, fields: Mapping[str, Any]) -> bytes:
        """The key of the client, whose reply must answer the message that the node was sent last."""
        if fields.get("lineage") != self._lineage or fields.get("sequence") != self._asked.get(node):
            raise RunMismatch("the reply answers another message than the one that this node was sent last")
        if fields.get("version") != self._version:
            raise RunMismatch(
                f"the reply is from version {fields.get('version')} of the weights, and this is version {self._version}"
            )
        return _bytes_of(fields, "key", KEY_BYTES)


def duplicates(updates: List[Update]) -> List[bytes]:
    """The keys under which several came, which only copies of a client's folder can have."""
    counts = collections.Counter(update.key for update in updates)
    return [key for key, count in counts.items() if count > 1]

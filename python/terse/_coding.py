"""Arrays and models of Python in the codecs of the compression library (the extension terse._codecs)."""

import functools
import struct
import sys
import zlib
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Tuple

import numpy as np

from .errors import CodecError

try:
    from . import _codecs
except ImportError as error:  # a checkout without a build, or a package of another Python
    _codecs, _missing = None, error

# The name of a tensor that stands alone, for messages.
ALONE = "array"
_DEVICES = {2: "cuda", 3: "cuda_host", 7: "vulkan", 8: "metal", 10: "rocm", 11: "rocm_host", 13: "cuda_managed", 14: "oneapi"}
_ON_CPU = 1

# A stored feedback: this, the CRC-32 of the rest, the round and the length of the pending message, that, the memory.
_MAGIC = b"TerseFeedback\x01"
_STATE = struct.Struct("<QQ")

Entry = Tuple[str, Tuple[int, ...], bool]  # name, shape, whether it is a buffer


def extension():
    """terse._codecs, or CodecError where it cannot be imported."""
    if _codecs is None:
        raise CodecError(f"codecs need the extension module terse._codecs, which is not there ({_missing}); install the package "
                         "from a wheel made for this Python, or put the folder python/ of a build in front on PYTHONPATH")
    return _codecs


class Structure(NamedTuple):
    """The tensors of a model, in the order of their layout, or one that stands alone."""

    entries: Tuple[Entry, ...]
    alone: bool

    def arrays(self, values, role: str) -> List[Any]:
        """The tensors of `values`, which has this structure, in the layout's order."""
        if self.alone:
            return [_array(ALONE, values, role)]
        if not isinstance(values, Mapping):
            raise CodecError(f"the {role} is a {type(values).__name__}; pass a mapping with the model's {len(self.entries)} tensors")
        names = {name for name, _, _ in self.entries}
        for name in values:
            if name not in names:
                raise CodecError(f"the {role} has a tensor '{name}', which the model has not; both ends need the same model")
        for name in names:
            if name not in values:
                raise CodecError(f"the {role} has no tensor '{name}'; both ends need the same model")
        return [_array(name, values[name], role) for name, _, _ in self.entries]

    def zeros(self) -> List[np.ndarray]:
        return [np.zeros(shape, dtype=np.float32) for _, shape, _ in self.entries]

    def assemble(self, arrays: List[np.ndarray], like):
        """The arrays as the user has them: alone or by name, in the order of `like`, and torch tensors where those are."""
        if self.alone:
            return _as(arrays[0], like)
        by_name = {name: array for (name, _, _), array in zip(self.entries, arrays)}
        return {name: _as(by_name[name], like[name]) for name in like}


def _is_shape(value) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in value)


def _shape_of(name: str, value) -> Tuple[int, ...]:
    shape = value if _is_shape(value) else getattr(value, "shape", None)
    if shape is None:
        raise CodecError(f"tensor '{name}' is a {type(value).__name__}; pass an array, such as one of NumPy or torch, or a shape")
    return tuple(int(n) for n in shape)


def structure_of(like, buffers: Collection[str] = ()) -> Structure:
    """The structure of an array, a shape, or a mapping from names to either; `buffers` names those that are not trained."""
    if not isinstance(like, Mapping):
        if buffers:
            raise CodecError("buffers are tensors of a mapping; one array alone has none")
        return Structure(((ALONE, _shape_of(ALONE, like), False),), True)
    for name in buffers:
        if name not in like:
            raise CodecError(f"buffers names '{name}', which is no tensor of the model")
    entries = [(str(name), _shape_of(name, value), name in buffers) for name, value in like.items()]
    return Structure(tuple(sorted(entries, key=lambda entry: entry[2])), False)  # stable: buffers go last


def _array(name: str, value, role: str):
    """An array that the extension can import: none of torch's bookkeeping, and in the CPU's memory."""
    if hasattr(value, "detach"):
        value = value.detach()  # the same memory, without its gradient
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        try:
            kind = device()[0]
        except Exception as error:  # whatever a framework raises for tensors that DLPack does not know
            raise CodecError(f"tensor '{name}' of the {role} cannot be handed over: {error}; copy it to the CPU") from error
        if kind != _ON_CPU:
            raise CodecError(f"tensor '{name}' of the {role} is on a device ({_DEVICES.get(int(kind), int(kind))}); copy it to the CPU, "
                             "such as with .cpu()")
    return value


def _as(array: np.ndarray, like):
    torch = sys.modules.get("torch")
    return torch.from_numpy(array) if torch is not None and isinstance(like, torch.Tensor) else array


@functools.lru_cache(maxsize=64)
def _coder(name: str, settings: Tuple[Tuple[str, Any], ...], entries: Tuple[Entry, ...]):
    return extension().make_coder(name, dict(settings), entries)


def coder_of(codec, structure: Structure):
    """The extension's coder for a Codec and a structure; made once."""
    return _coder(codec.name, tuple(sorted(codec.settings.items())), structure.entries)


def key_of(**numbers: int) -> Tuple[int, ...]:
    """The numbers of a CodecKey."""
    for name, number in numbers.items():
        if not isinstance(number, (int, np.integer)) or not 0 <= number < 2**64:
            raise CodecError(f"{name} is {number!r}; it is a whole number from 0 to below 2^64")
    return tuple(int(number) for number in numbers.values())


def bytes_of(message) -> bytes:
    """A message as bytes, from anything that holds bytes."""
    return message if isinstance(message, bytes) else bytes(memoryview(message))


class Feedback:
    """What a client remembers between rounds: the training that its messages have not carried yet (codec.feedback makes it).

    `compress` adds an update to the memory and encodes what the codec's feedback makes of the two; `settle` says whether the
    message came into the model, and takes out of the memory what an applied one carried. Which memory it is, the codec decides
    (compression/README.md, "Feedbacks"): the residual of error feedback, DGC's momentum correction, Signum's momentum, MCGQ's
    accumulation, or none. Any number of threads may use one; their calls wait for each other.
    """

    def __init__(self, codec, like, *, seed: int, client: int, buffers: Collection[str]):
        self._structure = structure_of(like, buffers)
        self._like = like if self._structure.alone else dict(like)
        self._coder = coder_of(codec, self._structure)
        self._memory = extension().Memory(self._coder)
        self._key = key_of(seed=seed, client=client)
        self._round = 0

    @property
    def name(self) -> str:
        """The row of the feedback table, such as "error_feedback"."""
        return self._memory.name

    @property
    def round(self) -> int:
        """The round of the next `compress`: 0, and one more after each."""
        return self._round

    def compress(self, update, *, round=None) -> bytes:
        """The message for the memory and the update, which is then pending until `settle`. The update stays as it is.

        round: for codecs that draw or that have a schedule of rounds; without it, one more than the last.
        """
        number = self._round if round is None else round
        seed, client = self._key
        message = self._memory.compress(self._structure.arrays(update, "update"), (seed, *key_of(round=number), client))
        self._round = number + 1
        return message

    def settle(self, applied: bool = True) -> None:
        """Ends a pending update: whether its message came into the model. One that did not joins the next (`discard`: is lost)."""
        self._memory.settle(applied)

    @property
    def pending(self):
        """The message that waits for `settle`, or None."""
        return self._memory.pending()

    @property
    def residual(self):
        """A copy of what waits to be sent, in the model's structure (Signum: the momentum)."""
        arrays = self._structure.zeros()
        self._memory.copy_residual(arrays)
        return self._structure.assemble(arrays, self._like)

    @property
    def norm(self) -> float:
        """The L2 norm of the residual."""
        return self._memory.norm()

    def reset(self) -> float:
        """Forgets everything, and returns the norm of what is lost."""
        return self._memory.reset()

    def state(self) -> bytes:
        """The memory, the round and a pending message, to be kept on a disk."""
        pending = self._memory.pending() or b""
        body = _STATE.pack(self._round, len(pending)) + pending + self._memory.dense()
        return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body

    def restore(self, state: bytes) -> None:
        """Goes on from what `state` returned, for the same codec and model. Raises CodecError for other bytes, and changes nothing."""
        state = bytes_of(state)
        body = state[len(_MAGIC) + 4:]
        whole = len(body) >= _STATE.size and state[:len(_MAGIC) + 4] == _MAGIC + zlib.crc32(body).to_bytes(4, "little")
        if not whole:
            raise CodecError(f"{len(state)} bytes that are no state of a feedback, or not all of one; restore what state() returned")
        number, length = _STATE.unpack_from(body)
        end = _STATE.size + length
        self._memory.restore(body[end:], body[_STATE.size:end])
        self._round = number


class UpdateHistory:
    """The record of one client's applied messages that both ends of a line keep, for `positions="shared"` (codec.history makes it).

    A message packed on one end and unpacked on the other with an equal history is the message again, in fewer bytes. Both ends
    `add` every message that was applied, in order. Any number of threads may use one; their calls wait for each other.
    """

    def __init__(self, codec, like, buffers: Collection[str]):
        self._history = extension().History(coder_of(codec, structure_of(like, buffers)))

    def pack(self, message: bytes) -> bytes:
        """The message with its positions coded by the history."""
        return self._history.pack(bytes_of(message))

    def unpack(self, packed: bytes) -> bytes:
        """The message that was packed."""
        return self._history.unpack(bytes_of(packed))

    def add(self, message: bytes) -> None:
        """The next message, not packed, that was applied."""
        self._history.add(bytes_of(message))

    def state(self) -> bytes:
        """The history, to be kept on a disk: about a byte for every element of the model."""
        return self._history.serialize()

    def restore(self, state: bytes) -> None:
        """Goes on from what `state` returned. Raises CodecError for other bytes, and changes nothing."""
        self._history.parse(bytes_of(state))

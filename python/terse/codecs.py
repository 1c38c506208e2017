"""Codecs by name, with the settings that each reads, for terse.Run. compression/README.md describes them.

`positions` names a coder of positions ("auto", "rice", "golomb", "shared", ...), `counts` how many elements each tensor sends
("proportional" or "equal"), `mean_precision` how a tensor's mean travels ("fp32" or "bf16"), and `bucket` how many elements
share a scale (0: a whole tensor).
"""

import dataclasses
from typing import Any, Collection, Dict, Optional

from . import _coding
from ._coding import Feedback, Like, Model, UpdateHistory


@dataclasses.dataclass(frozen=True)
class Codec:
    """A row of the codec table and its settings; codes updates of models into messages and back.

    An update is one array of float32 on the CPU, from NumPy, torch or anything else with DLPack, or a mapping from names to such
    arrays: a whole model, whose tensors are coded in the mapping's order. Both ends need the same names, shapes and order.
    `buffers` names the tensors that are averaged but not trained, such as BatchNorm's running mean: their change travels
    exactly, behind all others. Arrays are read and written where they lie; coding does not hold the GIL. Any number of threads may
    use one codec; arrays must not change while a call reads them. Raises CodecError for what cannot be coded.
    """

    name: str
    settings: Dict[str, Any]

    def with_settings(self, **settings: Any) -> "Codec":
        """This codec with further settings, also those that every codec obeys: grouping, merge_below, feedback and decay."""
        return Codec(self.name, {**self.settings, **settings})

    def encode(self, update: Model, residual: Optional[Model] = None, *, seed: int = 0, round: int = 0, client: int = 0,
               buffers: Collection[str] = ()) -> bytes:
        """The message for an update.

        With `residual`, arrays of the update's structure that are written in place, this is a round of error feedback (decay *
        residual + update is encoded, and the residual becomes what of it was not sent); only for codecs whose feedback that is,
        others keep their memory in `feedback`. seed, round, client: what the draws of stochastic codecs depend on; two messages
        that should be independent need different ones.
        """
        structure = _coding.structure_of(update, buffers)
        rest = None if residual is None else structure.arrays(residual, "residual")
        return _coding.coder_of(self, structure).encode(structure.arrays(update, "update"), rest,
                                                        _coding.key_of(seed=seed, round=round, client=client))

    def decode(self, message: bytes, like: Like, *, buffers: Collection[str] = ()) -> Model:
        """The update that a message stands for, as new arrays in the structure of `like`: an array, a shape, or a mapping to either.

        All sizes come from `like`. NumPy arrays, and torch tensors where `like` has those. Raises MalformedMessage for bytes that
        the codec could not have made.
        """
        structure = _coding.structure_of(like, buffers)
        arrays = structure.zeros()
        _coding.coder_of(self, structure).decode(_coding.bytes_of(message), arrays)
        return structure.assemble(arrays, like)

    def add_decoded(self, message: bytes, out: Model, *, sign: int = 1, buffers: Collection[str] = ()) -> None:
        """out += sign * decode(message), in place; sign is 1 or -1. Raises MalformedMessage as `decode`, and leaves `out` as it was."""
        if sign not in (1, -1):
            raise _coding.CodecError(f"sign is {sign!r}; it is 1 or -1")
        structure = _coding.structure_of(out, buffers)
        _coding.coder_of(self, structure).add_decoded(_coding.bytes_of(message), sign, structure.arrays(out, "output"))

    def feedback(self, like: Like, *, seed: int = 0, client: int = 0, buffers: Collection[str] = ()) -> Feedback:
        """The memory of one client for models like `like`, which encodes from round to round: every codec's own kind."""
        return Feedback(self, like, seed=seed, client=client, buffers=buffers)

    def history(self, like: Like, *, buffers: Collection[str] = ()) -> UpdateHistory:
        """The history by which messages are packed, for codecs that send positions."""
        return UpdateHistory(self, like, buffers)

    def cost_bits(self, update: Model, *, seed: int = 0, round: int = 0, client: int = 0, buffers: Collection[str] = ()) -> int:
        """The bits of `encode(update)` by the codec's formula, without its format byte and the padding to whole bytes."""
        structure = _coding.structure_of(update, buffers)
        return _coding.coder_of(self, structure).cost_bits(structure.arrays(update, "update"),
                                                           _coding.key_of(seed=seed, round=round, client=client))

    def max_message_bytes(self, like: Like, *, buffers: Collection[str] = ()) -> int:
        """The most bytes that a message for models like `like` has."""
        return _coding.coder_of(self, _coding.structure_of(like, buffers)).max_message_bytes


def sbc(*, density: float = 0.01, mean_precision: str = "fp32", positions: str = "auto",
        counts: str = "proportional") -> Codec:
    """Sparse Binary Compression (Sattler et al. 2018): the k largest of one sign, as their mean."""
    return Codec("sbc", dict(density=density, mean_precision=mean_precision, positions=positions, counts=counts))


def stc(*, density: float = 0.01, mean_precision: str = "fp32", positions: str = "auto",
        counts: str = "proportional") -> Codec:
    """Sparse Ternary Compression (Sattler et al. 2019): the k largest of both signs, as plus or minus the mean magnitude."""
    return Codec("stc", dict(density=density, mean_precision=mean_precision, positions=positions, counts=counts))


def sbc_or_stc(*, density: float = 0.01, mean_precision: str = "fp32", positions: str = "auto",
               counts: str = "proportional") -> Codec:
    """For each tensor, sbc or stc: the one that keeps more energy a bit."""
    return Codec("sbc_or_stc", dict(density=density, mean_precision=mean_precision, positions=positions, counts=counts))


def top_k(*, density: float = 0.01, positions: str = "auto", counts: str = "proportional") -> Codec:
    """Gradient Dropping (Aji and Heafield 2017): the k largest magnitudes as they are."""
    return Codec("top_k", dict(density=density, positions=positions, counts=counts))


def dgc(*, density: float = 0.001, positions: str = "auto", momentum: float = 0.9, clip: float = 0.0,
        warmup_rounds: int = 0) -> Codec:
    """Deep Gradient Compression (Lin et al. 2018): top_k with momentum correction and a density for each round."""
    return Codec("dgc", dict(density=density, positions=positions, momentum=momentum, clip=clip,
                             warmup_rounds=warmup_rounds))


def sparseloco(*, density: float = 0.01, bits: int = 4, bucket: int = 0, positions: str = "auto") -> Codec:
    """SparseLoCo (Sarfi et al. 2025): the largest of each chunk of `bucket` elements (0: of a tensor), as one of 2^bits values."""
    return Codec("sparseloco", dict(density=density, bits=bits, bucket=bucket, positions=positions))


def strom(*, threshold: float = 0.01, positions: str = "auto") -> Codec:
    """Strom 2015: plus or minus the threshold for every element of at least that magnitude."""
    return Codec("strom", dict(threshold=threshold, positions=positions))


def adacomp(*, positions: str = "auto") -> Codec:
    """AdaComp (Chen et al. 2018): per bin, what the newest change lifts above the bin's largest."""
    return Codec("adacomp", dict(positions=positions))


def random_sparse(*, density: float = 0.01, counts: str = "proportional", code: str = "simple") -> Codec:
    """A random mask from a shared seed (Konečný et al. 2016)."""
    return Codec("random_sparse", dict(density=density, counts=counts, code=code))


def mcgq(*, samples: float = 0.05, sampling_step: float = 0.0, code: str = "simple", positions: str = "auto") -> Codec:
    """Monte Carlo Gradient Quantization (Mordido et al. 2020)."""
    return Codec("mcgq", dict(samples=samples, sampling_step=sampling_step, code=code, positions=positions))


def low_precision_sparse(*, density: float = 0.01, positions: str = "auto") -> Codec:
    """An unbiased draw of elements as plus or minus one value (Yu et al. 2019, Double Quantization, Lemma 2)."""
    return Codec("low_precision_sparse", dict(density=density, positions=positions))


def qsgd(*, bits: int = 4, code: str = "simple", bucket: int = 0) -> Codec:
    """QSGD (Alistarh et al. 2017): levels of the magnitude over the norm, rounded at random."""
    return Codec("qsgd", dict(bits=bits, code=code, bucket=bucket))


def terngrad(*, clip: float = 0.0, bucket: int = 0) -> Codec:
    """TernGrad (Wen et al. 2017): zero, or plus or minus the largest magnitude."""
    return Codec("terngrad", dict(clip=clip, bucket=bucket))


def one_bit(*, bucket: int = 0) -> Codec:
    """1-bit SGD (Seide et al. 2014): a bit for the mean of its side."""
    return Codec("one_bit", dict(bucket=bucket))


def signsgd() -> Codec:
    """signSGD (Bernstein et al. 2018): signs, which decode to plus and minus one."""
    return Codec("signsgd", {})


def signum(*, momentum: float = 0.9) -> Codec:
    """Signum (Bernstein et al. 2018, Algorithm 2): the signs of the momentum."""
    return Codec("signum", dict(momentum=momentum))


def ef_signsgd(*, bucket: int = 0) -> Codec:
    """EF-signSGD (Karimireddy et al. 2019): signs and the mean magnitude."""
    return Codec("ef_signsgd", dict(bucket=bucket))


def low_precision(*, bits: int = 4, bucket: int = 0) -> Codec:
    """Multiples of a step, rounded at random (Yu et al. 2019, Double Quantization, section 3)."""
    return Codec("low_precision", dict(bits=bits, bucket=bucket))


def fp16() -> Codec:
    """Every element as IEEE 754 binary16."""
    return Codec("fp16", {})


def bf16() -> Codec:
    """Every element as bfloat16."""
    return Codec("bf16", {})


def dense() -> Codec:
    """Every element as float32."""
    return Codec("dense", {})

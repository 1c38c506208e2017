"""What a run needs of a model: its tensors by name, in a fixed order, as one flat vector.

The vector is of float32, or of bfloat16 as uint16, the upper halves of floats (docs/TRAINER.md: dtype). A model is a torch.nn.Module, or a mapping from names to NumPy arrays of float32, which are written in place.
"""

import sys
from typing import Any, List, Mapping, NamedTuple, Tuple

import numpy as np

from .errors import RunMismatch


class TensorEntry(NamedTuple):
    name: str
    shape: Tuple[int, ...]
    kind: str  # "parameter" or "buffer"

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class ArrayModel:
    """A mapping of NumPy arrays. All of them are parameters."""

    device = "cpu"
    dtype = "float32"
    result = "weights"
    in_place = False

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self._arrays = dict(arrays)
        for name, array in self._arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype != np.float32 or not array.flags.writeable:
                raise RunMismatch(f"'{name}' must be a NumPy array of float32 that can be written")

    def entries(self) -> List[TensorEntry]:
        return [TensorEntry(name, array.shape, "parameter") for name, array in self._arrays.items()]

    def load(self, flat: np.ndarray) -> None:
        offset = 0
        for array in self._arrays.values():
            array[...] = flat[offset:offset + array.size].reshape(array.shape)
            offset += array.size

    def store(self, flat: np.ndarray) -> None:
        offset = 0
        for array in self._arrays.values():
            flat[offset:offset + array.size] = array.reshape(-1)
            offset += array.size

    store_result = store


class TorchModel:
    """A torch.nn.Module: the parameters that require a gradient, then the buffers of floating point, unless they stay here.

    Names are those of state_dict. A tensor may be of any floating-point type and on any device. The weights of a model that
    is bfloat16 throughout are shared as bfloat16. A model with narrower types than float32 among others hands back how
    its weights have changed since they were loaded: the rounding when they are loaded is none of its training.
    """

    def __init__(self, module, with_buffers: bool, share_memory: bool):
        import torch  # the user has it: the model is one of torch's

        self._torch = torch
        tensors = [(name, p, "parameter") for name, p in module.named_parameters() if p.requires_grad]
        if with_buffers:
            kept = set(module.state_dict(keep_vars=True))
            tensors += [(name, b, "buffer") for name, b in module.named_buffers()
                        if name in kept and b.is_floating_point()]
        if not tensors:
            raise RunMismatch("the model has no parameter that requires a gradient")
        self._tensors = tensors
        types = {t.dtype for _, t, _ in tensors}
        self.dtype = "bfloat16" if types == {torch.bfloat16} else "float32"
        is_narrow = any(torch.finfo(one).bits < 32 for one in types)
        self.result = "delta" if is_narrow and self.dtype == "float32" else "weights"
        self._loaded: List[Any] = []  # the tensors as they were loaded, where the result is their change
        is_shareable = types in ({torch.float32}, {torch.bfloat16}) and all(t.device.type == "cpu" for _, t, _ in tensors)
        self._shares = share_memory and is_shareable

    @property
    def in_place(self) -> bool:
        """Whether the tensors lie in the shared memory once they are loaded, so that nothing is copied."""
        return self._shares

    @property
    def device(self) -> str:
        return str(self._tensors[0][1].device)

    def entries(self) -> List[TensorEntry]:
        return [TensorEntry(name, tuple(t.shape), kind) for name, t, kind in self._tensors]

    def load(self, flat: np.ndarray) -> None:
        with self._torch.no_grad():
            for tensor, part in self._parts(flat):
                if self._shares:
                    tensor.data = part
                else:
                    tensor.copy_(part)
            if self.result == "delta":
                self._loaded = [tensor.detach().clone() for _, tensor, _ in self._tensors]

    def store(self, flat: np.ndarray) -> None:
        with self._torch.no_grad():
            for tensor, part in self._parts(flat):
                if tensor.data_ptr() != part.data_ptr():  # the user may have given it other memory
                    part.copy_(tensor)

    def store_result(self, flat: np.ndarray) -> None:
        if self.result == "weights":
            self.store(flat)
            return
        with self._torch.no_grad():
            for (tensor, part), loaded in zip(self._parts(flat), self._loaded):
                part.copy_(tensor.float() - loaded.float())

    def _parts(self, flat):
        """Each tensor, and its part of the flat vector in its shape."""
        is_half = flat.dtype == np.uint16
        whole = self._torch.from_numpy(flat.view(np.int16)).view(self._torch.bfloat16) if is_half else self._torch.from_numpy(flat)
        offset = 0
        for _, tensor, _ in self._tensors:
            yield tensor, whole[offset:offset + tensor.numel()].view(tensor.shape)
            offset += tensor.numel()

    def parameters_at(self, positions: np.ndarray):
        """The parameters that hold flat `positions`, which increase, each with the positions in it."""
        offset = 0
        for _, tensor, kind in self._tensors:
            begin, end = np.searchsorted(positions, [offset, offset + tensor.numel()])
            if kind == "parameter" and end > begin:
                yield tensor, self._torch.from_numpy(positions[begin:end] - offset).to(tensor.device)
            offset += tensor.numel()


def adapt(model, with_buffers: bool = True, share_memory: bool = False):
    """The model as a run sees it. Raises RunMismatch for what is no model."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return TorchModel(model, with_buffers, share_memory)
    if isinstance(model, Mapping):
        return ArrayModel(model)
    raise RunMismatch(f"a model is a torch.nn.Module or a mapping of NumPy arrays, not {type(model).__name__}")

"""What a run needs of a model: its tensors by name, in a fixed order, as one flat vector of float32.

A model is a torch.nn.Module, or a mapping from names to NumPy arrays of float32, which are written in place.
"""

import sys
from typing import List, Mapping, NamedTuple, Tuple

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


class TorchModel:
    """A torch.nn.Module: the parameters that require a gradient, then the buffers of floating point, unless they stay here.

    Names are those of state_dict. A tensor may be of any floating-point type and on any device; its values travel as
    float32.
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
        self._shares = share_memory and all(t.dtype == torch.float32 and t.device.type == "cpu" for _, t, _ in tensors)

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

    def store(self, flat: np.ndarray) -> None:
        with self._torch.no_grad():
            for tensor, part in self._parts(flat):
                if tensor.data_ptr() != part.data_ptr():  # the user may have given it other memory
                    part.copy_(tensor)

    def _parts(self, flat):
        """Each tensor, and its part of the flat vector in its shape."""
        offset = 0
        for _, tensor, _ in self._tensors:
            yield tensor, self._torch.from_numpy(flat[offset:offset + tensor.numel()]).view(tensor.shape)
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

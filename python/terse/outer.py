"""An outer step for torch training loops that run on several workers and talk rarely (DiLoCo, Douillard et al. 2023, Algorithm 1).

Every worker takes many inner steps with an optimizer of its own, such as AdamW. Then the workers exchange what their weights
have moved by, each in a message of one of terse.codecs, and all take the same outer step, with Nesterov's momentum, from the
weights that they had in common. Nothing else is exchanged. What a message did not carry waits in the worker's memory for the
next one (error feedback).
"""

import struct
import zlib
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import torch

from . import codecs
from .errors import MalformedMessage, RunMismatch, TerseError

# Before a message: the outer step that it belongs to, the CRC-32 of the weights that it starts from, and of the message.
_HEADER = struct.Struct("<QII")

Exchange = Callable[[bytes], List[bytes]]


class OuterOptimizer:
    """Brings the workers' models together, one outer step at a time.

    model: whose parameters that require a gradient take part, of any floating type on any device; buffers stay each worker's own.
    All workers begin with the same values. codec: how what a worker has learned travels (terse.codecs); dense by default.
    learning_rate, momentum: of the outer step; the defaults are the paper's. exchange: hands a worker's bytes in and returns those of
    all workers, in the same order everywhere; by default the processes of torch.distributed, or this one alone where that is not
    initialized. group: the process group of that exchange, for backends that take tensors of the processor, such as gloo. seed: of codecs
    that draw. worker: this one's number, by default the rank.

    Memory: three float32 copies of the parameters on the processor, and the codec's. Not thread-safe.
    """

    def __init__(self, model: torch.nn.Module, *, codec: Optional[codecs.Codec] = None, learning_rate: float = 0.7,
                 momentum: float = 0.9, exchange: Optional[Exchange] = None, group: Any = None, seed: int = 0,
                 worker: Optional[int] = None):
        if learning_rate <= 0 or not 0 <= momentum < 1:
            raise TerseError(f"an outer step needs a learning rate above 0 and a momentum from 0 to below 1, not {learning_rate} and "
                             f"{momentum}")
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self._parameters:
            raise RunMismatch("no parameter of the model requires a gradient, so there is nothing to bring together")
        self._codec = codecs.dense() if codec is None else codec
        self._learning_rate, self._momentum = learning_rate, momentum
        self._exchange = _exchange_of(group) if exchange is None else exchange
        self._agreed = {name: _as_array(p) for name, p in self._parameters.items()}
        self._velocity = {name: np.zeros_like(array) for name, array in self._agreed.items()}
        self._feedback = self._codec.feedback(self._agreed, seed=seed, client=_rank() if worker is None else worker)
        self.steps = 0  # outer ones that were taken
        self.sent_bytes = 0  # of this worker's messages, over all steps; a header of 16 bytes with each

    @torch.no_grad()
    def step(self) -> None:
        """Exchanges what the model learned since the last step, and moves it to the weights that all workers have from now on.

        Raises RunMismatch when a worker has taken another number of steps or started from other weights, and MalformedMessage for
        bytes that no worker sent; the model then has the weights that it had.
        """
        moved = {name: _as_array(p) - self._agreed[name] for name, p in self._parameters.items()}
        message = self._feedback.compress(moved)
        del moved
        try:
            mean = self._mean_of(self._exchange(self._header(message) + message))
        except BaseException:
            self._feedback.settle(applied=False)  # what this worker learned joins its next message
            raise
        self._feedback.settle()
        self._take(mean)
        self.steps += 1
        self.sent_bytes += _HEADER.size + len(message)

    def state_dict(self) -> Dict[str, Any]:
        """What a worker that starts again goes on from, beside the model and the inner optimizer."""
        copies = ({name: torch.from_numpy(array.copy()) for name, array in arrays.items()} for arrays in (self._agreed, self._velocity))
        agreed, velocity = copies
        return {"agreed": agreed, "velocity": velocity, "feedback": self._feedback.state(), "steps": self.steps,
                "sent_bytes": self.sent_bytes}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on from what state_dict returned, for the same model and codec; RunMismatch for another one's."""
        for part in ("agreed", "velocity"):
            shapes = {name: tuple(array.shape) for name, array in state[part].items()}
            if shapes != {name: array.shape for name, array in self._agreed.items()}:
                raise RunMismatch(f"the state's {part} weights are of another model; load the one that was saved with this model")
        self._feedback.restore(state["feedback"])
        self._agreed = {name: state["agreed"][name].numpy().copy() for name in self._agreed}
        self._velocity = {name: state["velocity"][name].numpy().copy() for name in self._velocity}
        self.steps, self.sent_bytes = state["steps"], state["sent_bytes"]

    def _header(self, message: bytes) -> bytes:
        crc = 0
        for array in self._agreed.values():
            crc = zlib.crc32(array, crc)
        return _HEADER.pack(self.steps, crc, zlib.crc32(message))

    def _mean_of(self, received: List[bytes]) -> Dict[str, np.ndarray]:
        """The mean of what the workers' messages carry, added in the workers' order: the same bits everywhere."""
        mine = self._header(b"")[:12]
        total = {name: np.zeros_like(array) for name, array in self._agreed.items()}
        for worker, bytes_of_worker in enumerate(received):
            if len(bytes_of_worker) < _HEADER.size:
                raise MalformedMessage(f"worker {worker} sent {len(bytes_of_worker)} bytes, which are no message of an outer step")
            steps, _, crc = _HEADER.unpack_from(bytes_of_worker)
            message = bytes_of_worker[_HEADER.size:]
            if zlib.crc32(message) != crc:
                raise MalformedMessage(f"worker {worker}'s message was changed on its way")
            if bytes_of_worker[:12] != mine:
                raise RunMismatch(f"worker {worker} is at outer step {steps}, or has other weights, and this one is at step {self.steps}: all "
                                  "workers start from the same weights, and a worker that starts again loads its state_dict")
            self._codec.add_decoded(message, total)
        for array in total.values():
            array /= np.float32(len(received))
        return total

    def _take(self, mean: Dict[str, np.ndarray]) -> None:
        """Nesterov's step along the mean, as torch.optim.SGD takes it against a gradient of the other sign."""
        momentum, rate = np.float32(self._momentum), np.float32(self._learning_rate)
        for name, step in mean.items():
            velocity = self._velocity[name]
            velocity *= momentum
            velocity += step
            step += momentum * velocity
            step *= rate
            self._agreed[name] += step
            self._parameters[name].copy_(torch.from_numpy(self._agreed[name]))


def _as_array(parameter: torch.Tensor) -> np.ndarray:
    """A copy of the parameter as float32 on the processor."""
    return parameter.detach().to(device="cpu", dtype=torch.float32, copy=True).contiguous().numpy()


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _exchange_of(group) -> Exchange:
    def alone(message: bytes) -> List[bytes]:
        return [message]

    def gather(message: bytes) -> List[bytes]:
        workers = torch.distributed.get_world_size(group)
        mine = torch.tensor([len(message)])
        lengths = [torch.zeros_like(mine) for _ in range(workers)]
        torch.distributed.all_gather(lengths, mine, group=group)
        longest = int(max(lengths))
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[:len(message)] = torch.frombuffer(bytearray(message), dtype=torch.uint8)
        received = [torch.zeros_like(padded) for _ in range(workers)]
        torch.distributed.all_gather(received, padded, group=group)
        return [each[:int(length)].numpy().tobytes() for each, length in zip(received, lengths)]

    return gather if torch.distributed.is_available() and torch.distributed.is_initialized() else alone

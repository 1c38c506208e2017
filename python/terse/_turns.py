"""A simulated client's turn: one round of its training, by a function of the user's own."""

from typing import Any, Callable, Dict, Mapping, NamedTuple, Tuple

import numpy as np

from . import _metrics, _models
from .errors import RunMismatch


class Work(NamedTuple):
    """What a round asks of a simulated client.

    client: its number, from 0. round: number of the round, from 1. version: of the weights that the model was given.
    local_steps: optimizer steps that the run asks for. first_iteration: the run's count of steps at which this round begins.
    """

    client: int
    round: int
    version: int
    local_steps: int
    first_iteration: int


Train = Callable[[Any, Work], Mapping[str, float]]


class Turns:
    """Trains one client after the other, all with the same model, in the process that it is in. Not thread-safe."""

    def __init__(self, client_fn: Callable[[int], Train], model):
        self._client_fn, self._source = client_fn, model
        self._model = None

    def model(self, with_buffers: bool):
        """The model as the run sees it; a run asks for buffers always or never."""
        if self._model is None:
            self._model = _models.adapt(self._source, with_buffers)
        return self._model

    def train(self, work: Work, state: bytes, weights: np.ndarray, result: np.ndarray,
              with_buffers: bool) -> Tuple[Dict[str, Any], bytes]:
        """Trains from `weights` into `result`, which may be one array, with the state that the client's last turn left, or b"".

        Returns the members of the answer to the client, and the state that its next turn gets. Raises what the user's functions
        raise, and RunMismatch for metrics that are none.
        """
        train = self._client_fn(work.client)
        restore, save = getattr(train, "restore", None), getattr(train, "save", None)
        if state and restore is not None:
            restore(state)
        model = self.model(with_buffers)
        model.load(weights)
        metrics = train(self._source, work)
        if not isinstance(metrics, Mapping) or "loss" not in metrics:
            raise RunMismatch("the training function of a client must return metrics with 'loss', the mean training loss")
        samples = int(metrics.get("samples", 0))
        others = {name: value for name, value in metrics.items() if name not in ("loss", "samples")}
        named = _metrics.named("training", others, samples) if others else []
        model.store_result(result)
        answer = {"loss": float(metrics["loss"]), "samples": samples, "metrics": named}
        return answer, save() if save is not None else b""

"""The coordinator's evaluator in Python: it says how good the weights are that a round ended with."""

import dataclasses
import json
from typing import Any, Callable, Dict, Mapping, Optional

from . import _metrics, _models
from ._channel import Channel, Gone, Kind, hello
from ._client import AtSocket, StartedByClient
from ._requests import Responder
from .errors import ClientError, RunMismatch, TerseError

_TEST = "test"


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """What is evaluated. round: the number of the round that ended with the weights. run: as Fleet.run."""

    round: int
    run: Mapping[str, Any]


def serve_evaluator(model, evaluate: Callable[[Evaluated], Mapping[str, float]], *, samples: int = 1,
                    path: Optional[str] = None) -> None:
    """Evaluates a run's models for its coordinator, until that is gone.

    For `terse-coordinator --evaluator COMMAND`, which starts such a program for each run of an external model, and with `path`
    for `terse-coordinator --evaluator-socket PATH`, which it attaches to.

    model: as for Fleet.rounds, with the run's tensors. evaluate: is called with the round's weights in the model and returns
    metrics by name: at least "loss", the mean over the test set; "accuracy" and "top5" are fractions of it, "perplexity"
    is exp of the mean cross-entropy, and further names are the user's own. What it raises ends the program, and the
    coordinator notes that the round was not evaluated. samples: examples of the test set.

    Raises ClientError when no coordinator is there, and RunMismatch for metrics that are none.
    """
    try:
        connection = StartedByClient() if path is None else AtSocket(path)
    except ClientError as error:
        raise ClientError(f"no coordinator waits for an evaluator: {error}") from error
    channel = Channel(connection.socket)
    try:
        _Evaluator(channel, model, evaluate, int(samples)).serve()
    finally:
        channel.close()


class _Evaluator(Responder):
    """Answers the requests of one connection."""

    _role = "evaluator"

    def __init__(self, channel: Channel, model, evaluate, samples: int):
        super().__init__()
        self._handlers = {Kind.EVALUATE: lambda body: self._done(metrics=self._metrics_of(json.loads(body)["round"]))}
        self._channel, self._evaluate, self._samples = channel, evaluate, samples
        self._source = model
        self._model = None
        self._run: Dict[str, Any] = {}

    def serve(self) -> None:
        while True:
            try:
                kind, body, file = self._channel.receive()
                self._handle(kind, body, file)
            except Gone:
                return

    def _open(self, request: Dict[str, Any]) -> None:
        if request.get("role") != self._role:
            self._channel.fail("FAILED_PRECONDITION", "this program evaluates and trains nothing; use terse.attach for that")
            return
        self._run = {key: value for key, value in request.items() if key not in ("protocol", "role")}
        try:
            self._model = _models.adapt(self._source, request["buffers"] == "averaged", share_memory=False)
        except TerseError as error:
            self._channel.fail("FAILED_PRECONDITION", str(error))
            raise
        self._done(**hello(self._model, self._samples, has_state=False, has_momentum=False))

    def _metrics_of(self, number: int):
        self._model.load(self._vectors.weights)
        try:
            metrics = self._evaluate(Evaluated(number, self._run))
            if "loss" not in metrics:
                raise RunMismatch("an evaluation needs 'loss', the mean over the test set")
            return _metrics.named(_TEST, metrics, self._samples)
        except Exception as error:
            self._channel.fail("FAILED_PRECONDITION", f"round {number} was not evaluated: {type(error).__name__}: {error}")
            raise

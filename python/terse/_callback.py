"""The rounds of a run, for frameworks that own the training loop and call back (terse.lightning, terse.huggingface)."""

import copy
import logging
import math
import pickle
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._fleet import Fleet, Round
from .errors import RunMismatch

_log = logging.getLogger("terse")


def examples_of(loader) -> int:
    """The number of examples that a data loader goes through. Raises RunMismatch where the data has no length."""
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError):
        raise RunMismatch("the number of examples is unknown, since the data has no length: give the data set a __len__, or "
                          "name the number of training examples as Federated(fleet, samples=N)") from None


def examples_by(epochs: float, loader, batch_size: int, batches: int) -> int:
    """How many examples a data loader has given after so many epochs, or after so many batches where it has no length.

    Only the last batch of each epoch may be a smaller one.
    """
    try:
        in_epoch = min(len(loader) * batch_size, len(loader.dataset))
    except TypeError:
        return batches * batch_size
    whole = int(epochs)
    return whole * in_epoch + min(round((epochs - whole) * len(loader)) * batch_size, in_epoch)


class Rounds:
    """Steps through the rounds of a fleet while a framework trains. Not thread-safe.

    current: the round that is trained; None before begin and once the run is over. steps: optimizer steps taken in it.
    """

    def __init__(self, fleet: Fleet, samples: Optional[int]):
        self._fleet = fleet
        self._examples = samples
        self._rounds: Iterator[Round] = iter(())
        self._schedulers: List[Any] = []
        self._final: Optional[Dict[str, Any]] = None  # the model's weights, where the run was over at the beginning
        self._has_warned = False
        self._advance()

    def _advance(self) -> bool:
        """Waits for the next round; False once the run is over."""
        self.current = next(self._rounds, None)
        self.steps = self._samples = 0
        self._totals: Dict[str, Tuple[Any, float]] = {}  # each metric's weighed sum, and its weight
        self._evaluation: Dict[str, Tuple[float, int]] = {}  # each metric's value, and its examples
        return self.current is not None

    def begin(self, model, optimizers: Sequence[Any], schedulers: Sequence[Any], loader, processes: int) -> bool:
        """Waits for the first round, and gives the learning-rate schedulers the state of the newest update.

        loader: of the training data. processes: that train together. Returns False if the run is over already.
        """
        if processes != 1 or len(optimizers) != 1:
            raise RunMismatch(f"a client of a run trains in one process with one optimizer, not in {processes} with "
                              f"{len(optimizers)}")
        samples = examples_of(loader) if self._examples is None else self._examples
        self._schedulers = list(schedulers)
        self._rounds = self._fleet.rounds(model, optimizers[0], samples=samples)
        if not self._advance():
            self._final = copy.deepcopy(model.state_dict())
        elif self._fleet.extra is not None:
            self._restore(self._fleet.extra)
        return self.current is not None

    def add(self, metrics: Mapping[str, Any], weight: float) -> None:
        """Adds figures of the training, numbers or tensors of one. Those of a name become one mean by their weights."""
        for name, value in metrics.items():
            total, weights = self._totals.get(name, (0.0, 0.0))
            self._totals[name] = total + value * weight, weights + weight

    def count(self, steps: int, *, samples: int) -> bool:
        """Counts optimizer steps, and examples that training saw. Returns True once the round is to be committed."""
        if self.current is not None:
            self.steps += steps
            self._samples += samples
        return self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether the round has had its optimizer steps."""
        return self.current is not None and self.steps >= self.current.local_steps

    def evaluated(self, metrics: Mapping[str, Any], samples: int) -> None:
        """Takes figures over so many examples, if the model still has the weights that the round began with."""
        if self.current is None:
            return
        if self.steps == 0:
            self._evaluation.update({name: (float(value), samples) for name, value in metrics.items()})
        elif not self._has_warned:
            self._has_warned = True
            _log.warning("an evaluation in the middle of round %d is not reported, since its weights are this client's own; "
                         "evaluate as a round begins, every %d optimizer steps", self.current.number,
                         self.current.local_steps)

    def commit(self) -> bool:
        """Hands in the round, and waits for the next one. Returns False once the run is over."""
        means = {name: float(total) / weight for name, (total, weight) in self._totals.items()}
        means = {name: mean for name, mean in means.items() if name == "loss" or math.isfinite(mean)}
        for name, (value, samples) in self._evaluation.items():
            if math.isfinite(value):
                self.current.evaluate({name: value}, samples=samples)
        state = pickle.dumps([scheduler.state_dict() for scheduler in self._schedulers])
        self.current.commit(samples=self._samples, metrics=means, extra=state)
        return self._advance()

    def end(self, model) -> None:
        """Says so if training ended before the run did. Otherwise the model has the weights that the run ended with."""
        if self.current is not None:
            _log.warning("training ended before the run did, after %d of the %d steps of round %d, which goes on "
                         "without this client", self.steps, self.current.local_steps, self.current.number)
        elif self._final is not None:  # a framework may have taken a step all the same
            model.load_state_dict(self._final)

    def _restore(self, state: bytes) -> None:
        try:
            states = pickle.loads(state)  # from this client's own folder, as the optimizer's
            for scheduler, each in zip(self._schedulers, states, strict=True):
                scheduler.load_state_dict(each)
        except (pickle.UnpicklingError, AttributeError, EOFError, KeyError, TypeError, ValueError) as error:
            raise RunMismatch(f"the state that was stored with the newest update does not fit the learning-rate schedulers: "
                              f"{error}. Make them as before, or join with another state folder, as a new client") from error

"""Taking part in a run: join or attach, rounds, commit."""

import json
import logging
import os
import socket
import struct
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _metrics, _models, _optimizers
from ._channel import Channel, Gone, Kind, hello
from ._client import AtSocket, ClientProcess, StartedByClient
from ._requests import Responder
from .errors import ClientError, ForkedProcess, RunMismatch, TerseError

_log = logging.getLogger("terse")
_STATE = struct.Struct("<Q")
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds between two starts of a client that something kills
_BETWEEN_REPORTS = 0.25  # seconds between two reports of a round's progress


def join(coordinator: str, *, state: str, name: Optional[str] = None, run: Optional[str] = None,
         tls: Optional[str] = None, insecure: bool = False, log_level: str = "info",
         options: Sequence[str] = ()) -> "Fleet":
    """Takes part in a run of a coordinator, as the client whose state is in a folder.

    coordinator: HOST:PORT. state: the folder that keeps what was not sent yet; the same one in every process that is this
    client, one at a time. name: of the client, unique in the fleet; by default the folder's name, and with `tls` the
    certificate's. run: which one, where the coordinator serves several. tls: a folder with this client's certificate.
    insecure: cleartext to other machines too. log_level: of the client process. options: more options of terse-client.

    Use it as a context manager. Raises ClientError when there is no client program.
    """
    arguments = ["--coordinator", coordinator, "--state", state, "--log-level", log_level]
    if name is None and tls is None:
        name = os.path.basename(os.path.abspath(state)) or socket.gethostname()
    for flag, value in (("--name", name), ("--run", run), ("--tls", tls)):
        if value is not None:
            arguments += [flag, value]
    if insecure:
        arguments.append("--insecure")
    return Fleet(lambda: ClientProcess(arguments + list(options)))


def attach(path: Optional[str] = None) -> "Fleet":
    """Takes part in a run as the trainer of a client that is there: the one that started this process, or at a path.

    For `terse-client --trainer COMMAND`, without `path`, and `terse-client --trainer-socket PATH`. Raises ClientError when there is
    none.
    """
    return Fleet(StartedByClient if path is None else lambda: AtSocket(path))


class Round:
    """A round that asks for this client's training.

    number: of the round, from 1. version: of the weights that the model was given. local_steps: optimizer steps that the run asks
    for. first_iteration: the run's count of steps at which this round begins, for learning-rate schedules.
    """

    def __init__(self, fleet: "Fleet", plan: Dict[str, int]):
        self._fleet = fleet
        self.number: int = plan["round"]
        self.version: int = plan["version"]
        self.local_steps: int = plan["steps"]
        self.first_iteration: int = plan["first_iteration"]
        self._committed = False
        self._stopped = False  # the client said that training may not go on
        self._report_due = time.monotonic() + _BETWEEN_REPORTS
        self._evaluation: List[Dict[str, Any]] = []

    def progress(self, steps: int) -> bool:
        """Says how many of the round's steps are done, and asks whether to go on. Call it after every step.

        steps: optimizer steps done since the round began. Returns False once the client was asked to stop: leave the loop
        within 5 seconds, which it waits. The round is given up and counts nowhere, the optimizer is put back to what it was
        before it, and Fleet.rounds raises the ClientError of a client that was stopped. Without progress only commit says so,
        when all of the training was for nothing. That a round is over for the fleet stops no training: the update comes late,
        and joins the next one where the codec has error feedback.

        The client is asked four times a second at most; all other calls only look at the clock. Raises RunMismatch after
        commit.
        """
        if self._committed:
            raise RunMismatch(f"round {self.number} was committed already; report progress before that")
        if self._stopped or time.monotonic() < self._report_due:
            return not self._stopped
        self._stopped = not self._fleet._report(int(steps))
        self._report_due = time.monotonic() + _BETWEEN_REPORTS
        return not self._stopped

    def evaluate(self, metrics: Mapping[str, float], *, samples: int) -> None:
        """Adds figures of the weights that the round began with, taken on data of this client's own before it trains.

        metrics: by name, such as {"accuracy": 0.93}, finite. samples: the examples that they are means over, which weigh this
        client in the mean over clients. They travel with the update that commit hands in, and `tersectl metrics` shows
        them. May be called again before commit, with other names. Raises RunMismatch for what is no metric.
        """
        if self._committed:
            raise RunMismatch(f"round {self.number} was committed already; evaluate before that")
        added = _metrics.named("evaluation", metrics, samples)
        twice = {each["name"] for each in added} & {each["name"] for each in self._evaluation}
        if twice:
            raise RunMismatch(f"round {self.number} has the evaluation metric '{min(twice)}' already")
        self._evaluation += added

    def commit(self, *, samples: int, metrics: Mapping[str, float], extra: Optional[bytes] = None) -> bool:
        """Hands in what the model has learned since the round began.

        samples: that training saw, counting repeats. metrics: at least "loss", the mean over the steps; further ones, by
        names of your own, go to the run's ledger with it (`tersectl metrics`). extra: bytes that are stored with the update and
        come back as Fleet.extra in a later process, such as a position in the data.

        Returns True once the update is durable: from then on it is counted exactly once, whatever is killed. Returns False
        when the client process died before that and the round went on without it, and after a progress that returned
        False. Raises ClientError when the client refused it, as for values that are not finite, and RunMismatch for what is no
        metric.
        """
        if self._committed:
            raise RunMismatch(f"round {self.number} was committed already")
        if "loss" not in metrics:
            raise RunMismatch("metrics need 'loss', the mean training loss of the round's steps")
        others = {name: value for name, value in metrics.items() if name != "loss"}
        named = _metrics.named("training", others, samples) if others else []
        self._committed = True
        if self._stopped:
            self._fleet._cancel(self)
            return False
        return self._fleet._commit(self, {"loss": float(metrics["loss"]), "samples": int(samples),
                                          "metrics": named + self._evaluation}, extra)


def _parts_of(state: bytes) -> Tuple[Dict[str, Any], bytes, bytes]:
    """The header of a saved state, the optimizer's part and the user's."""
    (size,) = _STATE.unpack_from(state)
    begin = _STATE.size + size
    header = json.loads(state[_STATE.size:begin])
    end = begin + header["optimizer"]
    return header, state[begin:end], state[end:]


class Fleet(Responder):
    """A client of a run, which join and attach make. Not thread-safe, and not for processes that are forked from this one.

    run: what the run is, as a dictionary with "run" (its name), "model", "seed", "shard", "rounds", "local_steps" and "batch_size";
    None before the first round. finished: why the run is over; None while it is not. extra: the bytes that were stored with
    the newest update; None where there are none.
    """

    def __init__(self, connect: Callable[[], Any]):
        super().__init__()
        self._handlers = {Kind.MASK: self._mask, Kind.SAVE: self._save, Kind.RESTORE: self._take_back,
                          Kind.SEALED: self._hear_sealed, Kind.FINISHED: self._finish}
        self._connect = connect
        self._pid = os.getpid()
        self._closed = False
        self._wait = _FIRST_WAIT
        self._model = None
        self._optimizer = None
        self._samples = 1
        self._restored: Optional[int] = None  # the round whose state was given back
        self._saved = b""
        self._start = b""  # the optimizer's state in the first round, until there is a saved one
        self._sealed: Optional[int] = None
        self._pending: Optional[Dict[str, int]] = None  # a plan that came while a commit was waited for
        self._held: Optional[Dict[str, Any]] = None  # a result that is being committed
        self.run: Optional[Dict[str, Any]] = None
        self.finished: Optional[str] = None
        self.extra: Optional[bytes] = None
        self._client = connect()
        self._channel = Channel(self._client.socket)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the run, until the next join. May be called again, and does nothing in a forked process."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._channel.close()
        self._client.end()

    @property
    def client_pid(self) -> Optional[int]:
        """The number of the client process, where it is known."""
        return self._client.pid

    def rounds(self, model, optimizer=None, *, samples: int = 1, share_memory: bool = True) -> Iterator[Round]:
        """Yields every round that asks for this client's training, with the agreed weights loaded into the model.

        model: a torch.nn.Module, of which the parameters that require a gradient travel, or a mapping from names to NumPy
        arrays of float32. optimizer: one of torch's; its state is stored with every update and comes back after a
        restart, and its momentum is masked where the run asks for it. samples: training examples that this client has,
        for runs that weigh clients by them. share_memory: a model of torch whose tensors are float32, or bfloat16, on the
        processor is moved into the memory that the client shares, so that nothing is copied; their values change when the next round begins.

        Ends when the run is over: Fleet.finished then says why, and the model has the weights that the run ended with.
        Each round must be committed, unless its progress returned False.
        """
        self._check_usable()
        if self._model is not None:
            raise RunMismatch("rounds() was called already; a fleet has one model")
        self._source, self._optimizer, self._samples, self._share = model, optimizer, int(samples), share_memory
        while True:
            plan = self._next_plan()
            if plan is None:
                return
            self._load()
            if self._optimizer is not None and not self._saved:
                self._start = _optimizers.save(self._optimizer)
            current = Round(self, plan)
            yield current
            if current._stopped and not current._committed:
                self._cancel(current)
            elif not current._committed:
                raise RunMismatch(f"round {current.number} was left without round.commit()")

    # Frames. Every request of the client is answered in here.

    def _next_plan(self) -> Optional[Dict[str, int]]:
        """The next request to train; None when the run is over."""
        plan, self._pending = self._pending, None
        while plan is None:
            plan = self._step()
            if self.finished is not None:
                return None
        return plan

    def _step(self) -> Optional[Dict[str, int]]:
        """Handles one frame, or the end of the client. Returns the plan of a request to train."""
        self._check_usable()
        is_gone = False
        try:
            kind, body, file = self._channel.receive()
            if kind == Kind.TRAIN:
                return json.loads(body)
            self._handle(kind, body, file)
        except Gone:
            is_gone = True
        if is_gone:  # out here, so that what it raises has no other exception behind it
            self._on_client_gone()
        return None

    def _mask(self, body: bytes) -> None:
        if self._optimizer is not None:
            _optimizers.mask_momentum(self._optimizer, self._model, np.frombuffer(body, dtype=np.int64))
        self._done()

    def _save(self, _: bytes) -> None:
        self._channel.send(Kind.DONE, self._state())

    def _take_back(self, body: bytes) -> None:
        self._restore(body)
        self._done()

    def _hear_sealed(self, body: bytes) -> None:
        self._sealed = json.loads(body)["round"]

    def _finish(self, body: bytes) -> None:
        self.finished = json.loads(body)["reason"]
        self._load()

    def _open(self, request: Dict[str, Any]) -> None:
        self.run = {key: value for key, value in request.items() if key != "protocol"}
        if self._model is None:
            try:
                self._model = _models.adapt(self._source, request["buffers"] == "averaged", self._share)
                _optimizers.check(self._optimizer, self._model)
            except TerseError as error:
                self._channel.fail("FAILED_PRECONDITION", str(error))
                raise
        self._done(**hello(self._model, self._samples, has_state=True, has_momentum=self._optimizer is not None))

    def _load(self) -> None:
        self._model.load(self._vectors.result if self._model.in_place else self._vectors.weights)

    # The state that is sealed with an update: the round, the optimizer's state and the user's bytes.

    def _state(self) -> bytes:
        if self._held is None:
            return self._saved
        optimizer = b"" if self._optimizer is None else _optimizers.save(self._optimizer)
        extra = self._held["extra"]
        header = json.dumps({"version": 1, "round": self._held["round"], "optimizer": len(optimizer),
                             "extra": None if extra is None else len(extra)}).encode()
        self._saved = _STATE.pack(len(header)) + header + optimizer + (extra or b"")
        return self._saved

    def _restore(self, state: bytes) -> None:
        header, optimizer, extra = _parts_of(state)
        self._restored = header["round"]
        if self._held is not None or self._saved == state:
            return  # of this process, which has it all
        self._saved = state
        if self._optimizer is not None and optimizer:
            _optimizers.restore(self._optimizer, optimizer)
        if header["extra"] is not None:
            self.extra = extra

    # Progress.

    def _report(self, steps: int) -> bool:
        """Whether training may go on."""
        self._check_usable()
        try:
            self._channel.send_json(Kind.PROGRESS, steps=steps)
            kind, body, _ = self._channel.receive()
        except Gone:
            return self._client_comes_back()
        if kind != Kind.GO_ON:
            raise ClientError(f"the client answered progress with a frame of kind {int(kind)}; "
                              "install releases that fit each other")
        return json.loads(body)["go_on"]

    def _client_comes_back(self) -> bool:
        """Whether a client that is gone is started again, which then gets the result; if not, the next frame says why."""
        try:
            self._client.gone()
        except ClientError:
            return False
        return True

    def _cancel(self, current: Round) -> None:
        """Answers that a round was given up, with the optimizer as it was before it."""
        saved = _parts_of(self._saved)[1] if self._saved else self._start
        if self._optimizer is not None and saved:
            _optimizers.restore(self._optimizer, saved)
        try:
            self._channel.fail("CANCELLED", f"stopped in round {current.number}")
        except Gone:
            pass  # the next step sees it too

    # Commit.

    def _commit(self, current: Round, result: Dict[str, Any], extra: Optional[bytes]) -> bool:
        self._check_usable()
        self._held = {"round": current.number, "version": current.version, "result": result, "extra": extra}
        try:
            return self._deliver(current)
        finally:
            self._held = None

    def _deliver(self, current: Round) -> bool:
        self._sealed = None
        self._restored = None
        self._answer()
        while True:
            plan = self._step()
            if self._sealed == current.number or self._restored == current.number:
                self._note_sealed()
                return True
            if self.finished is not None:
                return False
            if plan is not None and (plan["round"], plan["version"]) == (current.number, current.version):
                self._answer()  # a new client, which was given the same work
            elif plan is not None:
                _log.warning("round %d went on without this client, whose process died before the update was durable",
                             current.number)
                self._pending = plan
                return False

    def _answer(self) -> None:
        self._model.store_result(self._vectors.result)
        try:
            self._channel.send_json(Kind.DONE, **self._held["result"])
        except Gone:
            pass  # the next step sees it too

    def _note_sealed(self) -> None:
        self._wait = _FIRST_WAIT
        if self._held["extra"] is not None:
            self.extra = self._held["extra"]

    # The client process.

    def _on_client_gone(self) -> None:
        if self.finished is not None:
            return
        happened = self._client.gone()
        _log.warning("%s in %.1f s", happened, self._wait)
        time.sleep(self._wait)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._channel.close()
        self._client = self._connect()
        self._channel = Channel(self._client.socket)

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedProcess("this process was forked from the one that joined the fleet, which alone can use it; pass data "
                                "to workers, not the fleet or a round")
        if self._closed:
            raise RunMismatch("the fleet is closed; join again")

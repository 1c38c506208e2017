"""Simulation: all clients of a run on this machine, trained by functions of the user's own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Union

from . import _metrics, _models
from ._channel import PROTOCOL, Channel, Gone, Kind, hello
from ._client import find_program
from ._reader import StoredRun, open_run
from ._run import RUN_FILE, START_FILE, Run
from ._shared import SharedVectors
from .errors import ClientError, RunMismatch

_STOPPED = 130  # the exit code of terse-simulate after Ctrl-C


class Work(NamedTuple):
    """What a round asks of a simulated client.

    client: its number, from 0. round: number of the round, from 1. version: of the weights that the model was given. local_steps:
    optimizer steps that the run asks for. first_iteration: the run's count of steps at which this round begins.
    """

    client: int
    round: int
    version: int
    local_steps: int
    first_iteration: int


Train = Callable[[Any, Work], Mapping[str, float]]


class Simulation(NamedTuple):
    """A simulation that has ended.

    run: the stored run, with its rounds (terse.open). report: what `terse-simulate --json` says: the model's hash, seconds a
    round, bytes, memory.
    """

    run: StoredRun
    report: Dict[str, Any]


class _Trainer:
    """Trains for the clients of one process of terse-simulate, one after the other, at the other end of a socket."""

    def __init__(self, sock: socket.socket, client_fn: Callable[[int], Train], model,
                 samples: Union[int, Callable[[int], int]]):
        self._channel = Channel(sock)
        self._client_fn, self._source, self._samples = client_fn, model, samples
        self._model = None
        self._vectors: Optional[SharedVectors] = None
        self._index = 0
        self._train: Optional[Train] = None  # of the client whose turn it is; None until it is needed
        self._state = b""
        self.error: Optional[BaseException] = None  # of the user's functions

    def serve(self) -> None:
        """Until the other end closes the socket."""
        while True:
            try:
                kind, body, file = self._channel.receive()
            except Gone:
                return
            try:
                self._handle(kind, body, file)
            except Gone:
                return
            except BaseException as error:  # pylint: disable=broad-except
                self.error = error
                self._channel.fail("FAILED_PRECONDITION", f"{type(error).__name__}: {error}")
                return

    def _handle(self, kind, body: bytes, file: Optional[int]) -> None:
        if kind == Kind.OPEN:
            self._open(json.loads(body))
        elif kind == Kind.MEMORY:
            self._vectors = SharedVectors(file, json.loads(body)["elements"])
            self._channel.send_json(Kind.DONE)
        elif kind == Kind.TRAIN:
            self._work(json.loads(body))
        elif kind == Kind.SAVE:
            save = getattr(self._train, "save", None)
            self._channel.send(Kind.DONE, save() if save is not None else b"")
        elif kind == Kind.RESTORE:
            self._state = body
            self._channel.send_json(Kind.DONE)
        elif kind == Kind.START:
            self._channel.send_json(Kind.DONE, has_weights=False)
        elif kind not in (Kind.SEALED, Kind.FINISHED):
            self._channel.fail("UNIMPLEMENTED", f"this trainer does not know requests of kind {int(kind)}")

    def _open(self, request: Dict[str, Any]) -> None:
        if request["protocol"] != PROTOCOL:
            self._channel.fail("FAILED_PRECONDITION", f"this package speaks version {PROTOCOL} of the trainer protocol")
            return
        if self._model is None:
            self._model = _models.adapt(self._source, request["buffers"] == "averaged")
        self._index, self._train, self._state = request["shard"]["index"], None, b""
        samples = self._samples(self._index) if callable(self._samples) else self._samples
        self._channel.send_json(Kind.DONE, **hello(self._model, int(samples), has_state=True, has_momentum=False))

    def _work(self, plan: Dict[str, int]) -> None:
        if self._train is None:
            self._train = self._client_fn(self._index)
            restore = getattr(self._train, "restore", None)
            if self._state and restore is not None:
                restore(self._state)
        self._model.load(self._vectors.weights)
        work = Work(self._index, plan["round"], plan["version"], plan["steps"], plan["first_iteration"])
        metrics = self._train(self._source, work)
        if not isinstance(metrics, Mapping) or "loss" not in metrics:
            raise RunMismatch("the training function of a client must return metrics with 'loss', the mean training loss")
        samples = int(metrics.get("samples", 0))
        others = {name: value for name, value in metrics.items() if name not in ("loss", "samples")}
        named = _metrics.named("training", others, samples) if others else []
        self._model.store_result(self._vectors.result)
        self._channel.send_json(Kind.DONE, loss=float(metrics["loss"]), samples=samples, metrics=named)


def simulate(client_fn: Callable[[int], Train], *, run: Run, model, state: str, clients: int, cohort: Optional[int] = None,
             rounds: Optional[int] = None, processes: int = 1, samples: Union[int, Callable[[int], int]] = 1,
             options: List[str] = ()) -> Simulation:
    """Simulates a fleet on this machine: a real coordinator, and real clients whose training is done by functions of yours.

    client_fn: called with a client's number, from 0, when it is first asked for work in its turn; returns the function that trains
    for it. That function is called with the model, which has the agreed weights, and a Work; it trains the model in place and returns
    metrics with at least "loss"; "samples" is how many training saw, and further names are the user's own, means over these. It is dropped after the round. If it has the methods save() -> bytes and restore(bytes), what they hand
    over is stored with the client's update, and comes back in its next round: an optimizer's state, a position in the data.
    run: what is trained. model: a torch.nn.Module or a mapping of NumPy arrays, of the same tensors as the run's. state: folder of the
    simulation; one that was stopped goes on from there. clients: of the fleet. cohort: how many take part in a round, drawn at random; by
    default all. rounds: by default the run's. processes: with one, the functions are called in this thread; with more, in as many
    processes that are forked from this one: what they do stays there. samples: training examples of each client, for
    runs that weigh clients by them. options: more options of terse-simulate.

    The result is the same for any number of processes, bit for bit, if the functions draw at random from nothing but their Work.
    Raises what a function raised (with several processes ClientError, and the traceback is on standard error), ClientError
    with the reason when the simulation fails, KeyboardInterrupt after Ctrl-C: with several processes the open round ends
    first; with one it is given up, since its function was interrupted.
    """
    folder = os.path.join(state, "run")
    run.for_shards().save(folder)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(processes)]
    command = [find_program("terse-simulate"), os.path.join(folder, RUN_FILE), "--model",
               os.path.join(folder, START_FILE), "--state", state, "--clients", str(clients), "--processes",
               str(processes), "--json", *options]
    for flag, value in (("--cohort", cohort), ("--rounds", rounds)):
        command += [] if value is None else [flag, str(value)]
    sockets = [theirs for _, theirs in pairs]
    for theirs in sockets:
        command += ["--trainer-fd", str(theirs.fileno())]
    forked = [] if processes == 1 else _fork(pairs, client_fn, model, samples)
    # A process group of its own: Ctrl-C is this process's, which passes it on.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                          pass_fds=[theirs.fileno() for theirs in sockets]) as process:
        for theirs in sockets:
            theirs.close()
        words = _Words(process)
        error = None
        try:
            if processes == 1:
                error = _serve_here(pairs[0][0], client_fn, model, samples)
            for ours, _ in pairs[processes == 1:]:
                ours.close()
            process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        finally:
            out, err = words.end()
            for pid in forked:
                os.waitpid(pid, 0)
    if error is not None:
        raise error
    if process.returncode == _STOPPED:
        raise KeyboardInterrupt
    if process.returncode != 0:
        raise ClientError(err.strip() or f"terse-simulate ended with code {process.returncode}")
    return Simulation(open_run(os.path.join(state, "coordinator", "runs", run.name)), json.loads(out))


def _serve_here(sock, client_fn, model, samples) -> Optional[BaseException]:
    trainer = _Trainer(sock, client_fn, model, samples)
    try:
        trainer.serve()
    finally:
        sock.close()
    return trainer.error


def _fork(pairs, client_fn, model, samples) -> List[int]:
    """Starts a process for each socket, which trains until the socket is closed."""
    forked = []
    for place, (ours, _) in enumerate(pairs):
        pid = os.fork()
        if pid != 0:
            forked.append(pid)
            continue
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for other, (mine, theirs) in enumerate(pairs):
                theirs.close()
                if other != place:
                    mine.close()
            error = _serve_here(ours, client_fn, model, samples)
            if error is not None:
                traceback.print_exception(type(error), error, error.__traceback__)
            code = 0 if error is None else 1
        finally:
            sys.stderr.flush()
            os._exit(code)
    return forked


class _Words:
    """Reads what a process says, and shows its progress."""

    def __init__(self, process):
        self._out, self._err = [], []
        self._threads = [threading.Thread(target=self._read, args=arguments, daemon=True)
                         for arguments in ((process.stdout, self._out, False), (process.stderr, self._err, True))]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream, lines, is_shown):
        for line in stream:
            text = line.decode(errors="replace")
            lines.append(text)
            if is_shown:
                sys.stderr.write(text)
                sys.stderr.flush()

    def end(self):
        for thread in self._threads:
            thread.join()
        return "".join(self._out), self._err[-1] if self._err else ""

"""Simulation: all clients of a run on this machine, trained by functions of the user's own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._channel import Channel, Gone, Kind, hello
from ._client import find_program
from ._reader import StoredRun, open_run
from ._requests import Responder
from ._run import RUN_FILE, START_FILE, Run
from ._turns import Train, Turns, Work
from .errors import ClientError, RunMismatch

_STOPPED = 130  # the exit code of terse-simulate after Ctrl-C


class Simulation(NamedTuple):
    """A simulation that has ended.

    run: the stored run, with its rounds (terse.open). report: what `terse-simulate --json` says: the model's hash, seconds a
    round, bytes, memory.
    """

    run: StoredRun
    report: Dict[str, Any]


class _Trainer(Responder):
    """Answers for the clients of one process of terse-simulate, one after the other, at the other end of a socket."""

    def __init__(self, sock: socket.socket, turns, model: Callable[[bool], Any], samples: Union[int, Callable[[int], int]]):
        """turns: Turns, or what trains as it does. model: Turns.model."""
        super().__init__()
        self._handlers = {Kind.TRAIN: self._train, Kind.SAVE: self._save, Kind.RESTORE: self._restore}
        self._channel = Channel(sock)
        self._turns, self._model, self._samples = turns, model, samples
        self._with_buffers = True
        self._index = 0
        self._state = b""  # of the client whose turn it is
        self.error: Optional[BaseException] = None  # of the user's functions

    def serve(self) -> None:
        """Until the other end closes the socket."""
        try:
            while True:
                kind, body, file = self._channel.receive()
                try:
                    self._handle(kind, body, file)
                except Gone:
                    raise
                except BaseException as error:  # pylint: disable=broad-except
                    self.error = error
                    self._channel.fail("FAILED_PRECONDITION", f"{type(error).__name__}: {error}")
                    return
        except Gone:
            return

    def _train(self, body: bytes) -> None:
        plan = json.loads(body)
        work = Work(self._index, plan["round"], plan["version"], plan["steps"], plan["first_iteration"])
        answer, self._state = self._turns.train(work, self._state, self._vectors.weights, self._vectors.result,
                                                self._with_buffers)
        self._done(**answer)

    def _save(self, _: bytes) -> None:
        self._channel.send(Kind.DONE, self._state)

    def _restore(self, body: bytes) -> None:
        self._state = body
        self._done()

    def _open(self, request: Dict[str, Any]) -> None:
        self._with_buffers = request["buffers"] == "averaged"
        self._index, self._state = request["shard"]["index"], b""
        samples = self._samples(self._index) if callable(self._samples) else self._samples
        self._done(**hello(self._model(self._with_buffers), int(samples), has_state=True, has_momentum=False))


def simulate(client_fn: Callable[[int], Train], *, run: Run, model, state: str, clients: int,
             cohort: Optional[int] = None, rounds: Optional[int] = None, processes: int = 1, samples: Union[int, Callable[[int], int]] = 1,
             backend: str = "local", worker_options: Optional[Mapping[str, Any]] = None,
             options: Sequence[str] = ()) -> Simulation:
    """Simulates a fleet on this machine: a real coordinator, and real clients whose training is done by functions of yours.

    client_fn: called with a client's number, from 0, when it is asked for work; returns the function that trains for it. That
    function is called with the model, which has the agreed weights, and a Work; it trains the model in place and returns metrics
    with at least "loss"; "samples" is how many training saw, and further names are the user's own, means over these. It is
    dropped after the round. If it has the methods save() -> bytes and restore(bytes), what they hand over is stored with the
    client's update, and comes back in its next round: an optimizer's state, a position in the data.
    run: what is trained. model: a torch.nn.Module or a mapping of NumPy arrays, of the same tensors as the run's. state:
    folder of the simulation; one that was stopped goes on from there. clients: of the fleet. cohort: how many take part in a
    round, drawn at random; by default all. rounds: by default the run's. processes: how many clients train at a time. With one,
    the functions are called in this thread; with more, in as many processes that are forked from this one: what they do stays
    there. samples: training examples of each client, for runs that weigh clients by them. options: more options of
    terse-simulate. backend: "local", or "ray": then functions are called in as many workers on the machines of a Ray cluster,
    which this process is connected to, or connects to as ray.init() does, and the rest stays on this machine. client_fn and the
    model are pickled, and the package is installed on every machine. worker_options: of Ray's actors, such as {"num_gpus": 0.25};
    by default a worker has one CPU. A worker that is lost is a warning, and another trains again what it was training.

    The result is the same for any number of processes, bit for bit, if the functions draw at random from nothing but their
    Work, and with Ray if its machines compute the same as this one.
    Raises what a function raised (with several processes ClientError, and the traceback is on standard error), ClientError
    with the reason when the simulation fails, KeyboardInterrupt after Ctrl-C: with several processes or Ray the open round
    ends first; with one process it is given up, since its function was interrupted.
    """
    if backend not in ("local", "ray"):
        raise RunMismatch(f"there is no backend '{backend}'; the backends are 'local' and 'ray'")
    if worker_options and backend != "ray":
        raise RunMismatch("worker_options are for Ray's workers; give backend='ray' too")
    folder = os.path.join(state, "run")
    run.for_shards().save(folder)
    command = [find_program("terse-simulate"), os.path.join(folder, RUN_FILE), "--model",
               os.path.join(folder, START_FILE), "--state", state, "--clients", str(clients), "--processes",
               str(processes), "--json", *options]
    for flag, value in (("--cohort", cohort), ("--rounds", rounds)):
        command += [] if value is None else [flag, str(value)]
    if backend == "ray":
        trainers: _Trainers = _OnRay(client_fn, model, samples, worker_options or {})
    else:
        trainers = _Here(client_fn, model, samples) if processes == 1 else _Forked(client_fn, model, samples)
    code, out, err = _run(command, processes, trainers)
    if trainers.error is not None:
        raise trainers.error
    if code == _STOPPED:
        raise KeyboardInterrupt
    if code != 0:
        raise ClientError(err.strip() or f"terse-simulate ended with code {code}")
    return Simulation(open_run(os.path.join(state, "coordinator", "runs", run.name)), json.loads(out))


def _run(command: List[str], processes: int, trainers: "_Trainers") -> Tuple[int, str, str]:
    """Runs terse-simulate with such trainers. Returns its exit code, its output and its last line on standard error."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(processes)]
    sockets = [theirs for _, theirs in pairs]
    for theirs in sockets:
        command += ["--trainer-fd", str(theirs.fileno())]
    try:
        trainers.begin(pairs)
        # A process group of its own: Ctrl-C is this process's, which passes it on.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                              pass_fds=[theirs.fileno() for theirs in sockets]) as process:
            for theirs in sockets:
                theirs.close()
            words = _Words(process)
            try:
                trainers.serve()
                process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
            finally:
                out, err = words.end()
        return process.returncode, out, err
    finally:
        for theirs in sockets:
            theirs.close()
        trainers.end()
        for ours, _ in pairs:
            ours.close()


class _Trainers:
    """The trainers at the other ends of terse-simulate's sockets, and where they are."""

    error: Optional[BaseException] = None  # of the user's functions

    def __init__(self, client_fn, model, samples):
        self._client_fn, self._model, self._samples = client_fn, model, samples

    def begin(self, pairs) -> None:
        """Before terse-simulate is started, which gets the second socket of each pair."""

    def serve(self) -> None:
        """While it runs, in this thread."""

    def end(self) -> None:
        """Once it has ended, and the sockets are closed."""

    def _serve_socket(self, sock) -> Optional[BaseException]:
        turns = Turns(self._client_fn, self._model)
        trainer = _Trainer(sock, turns, turns.model, self._samples)
        trainer.serve()
        sock.close()
        return trainer.error


class _Here(_Trainers):
    """One trainer, in this thread."""

    def begin(self, pairs):
        self._socket = pairs[0][0]

    def serve(self):
        self.error = self._serve_socket(self._socket)


class _Forked(_Trainers):
    """Each in a process of its own, which trains until the socket is closed."""

    def __init__(self, client_fn, model, samples):
        super().__init__(client_fn, model, samples)
        self._children: List[int] = []

    def begin(self, pairs):
        for place, (ours, _) in enumerate(pairs):
            pid = os.fork()
            if pid != 0:
                self._children.append(pid)
                continue
            code = 1
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                for other, (mine, theirs) in enumerate(pairs):
                    theirs.close()
                    if other != place:
                        mine.close()
                error = self._serve_socket(ours)
                if error is not None:
                    traceback.print_exception(type(error), error, error.__traceback__)
                code = 0 if error is None else 1
            finally:
                sys.stderr.flush()
                os._exit(code)
        for ours, _ in pairs:
            ours.close()

    def end(self):
        for pid in self._children:
            os.waitpid(pid, 0)


class _OnRay(_Trainers):
    """Each in a thread of this process, which has a worker of Ray train."""

    def __init__(self, client_fn, model, samples, worker_options):
        super().__init__(client_fn, model, samples)
        self._options = worker_options
        self._workers = None
        self._trainers: List[_Trainer] = []
        self._threads: List[threading.Thread] = []

    def begin(self, pairs):
        from ._ray import RayWorkers  # the user has Ray, or is told what to install

        self._workers = RayWorkers(len(pairs), self._client_fn, self._model, self._options)
        model = Turns(self._client_fn, self._model).model  # for its layout
        self._trainers = [_Trainer(ours, self._workers, model, self._samples) for ours, _ in pairs]
        self._threads = [threading.Thread(target=each.serve, name="terse-simulate", daemon=True) for each in self._trainers]
        for thread in self._threads:
            thread.start()

    def end(self):
        self.error = next((each.error for each in self._trainers if each.error is not None), None)
        if self._workers is not None:
            self._workers.close()
        for thread in self._threads:
            thread.join()


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

"""Ray as the place where simulated clients train: workers on all machines of a Ray cluster."""

import logging
import pickle
import queue
import threading
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from ._turns import Train, Turns, Work
from .errors import ClientError, RunMismatch

_log = logging.getLogger("terse")
_ATTEMPTS = 3  # of a training whose workers are lost, and of starting a worker
_LOOK_SECONDS = 0.5  # between two looks whether the simulation has ended
_PATIENCE_SECONDS = 30.0  # without any worker, until a line says what they wait for


class _Worker:
    """A Ray actor, which trains one client after the other."""

    def __init__(self, functions: bytes):
        self._turns = Turns(*pickle.loads(functions))

    def ready(self) -> None:
        pass

    def train(self, work: Work, state: bytes, weights: np.ndarray,
              with_buffers: bool) -> Tuple[np.ndarray, Dict[str, Any], bytes]:
        result = weights.copy()  # which lie in the object store, where they cannot be written
        answer, saved = self._turns.train(work, state, result, result, with_buffers)
        return result, answer, saved


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _pickled(ray, functions) -> bytes:
    try:
        return ray.cloudpickle.dumps(functions)
    except Exception as error:
        raise RunMismatch("client_fn and the model must be things that can be pickled, to reach Ray's workers: "
                          f"{error}") from error


class RayWorkers:
    """Workers that any thread may have a client's turn done by, as Turns does it; as many work at once.

    A worker that is lost with its machine is replaced, and what it was training begins again on another, from the same
    weights and state: the result does not depend on it.
    """

    def __init__(self, count: int, client_fn: Callable[[int], Train], model, options: Mapping[str, Any]):
        """options: of Ray's actors, such as {"num_gpus": 0.25}. Connects to a cluster unless the process has."""
        try:
            import ray
        except ImportError as error:
            raise ClientError(f"Ray cannot be imported ({error}); install it with: pip install 'terse[ray]'") from error
        self._ray = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            ray.init()
        self._functions = None
        self._options = {"num_cpus": 1, **options}
        self._make = ray.remote(_Worker).options(**self._options)
        self._lock = threading.Lock()
        self._version: Optional[int] = None  # of the weights in the object store
        self._weights = None
        self._closed = threading.Event()
        self._workers = set()
        self._failed_starts = 0
        self._hopeless: Optional[str] = None  # why no worker can be started
        # Workers that are free, and those that could not be started, each with the error.
        self._ready: "queue.SimpleQueue[Tuple[Any, Optional[BaseException]]]" = queue.SimpleQueue()
        try:
            self._functions = ray.put(_pickled(ray, (client_fn, model)))
            for _ in range(count):
                self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the workers, and every call of train with ClientError."""
        self._closed.set()
        for worker in list(self._workers):
            self._ray.kill(worker)
        if self._is_ours:
            self._ray.shutdown()

    def train(self, work: Work, state: bytes, weights: np.ndarray, result: np.ndarray,
              with_buffers: bool) -> Tuple[Dict[str, Any], bytes]:
        """As Turns.train. Raises ClientError too, where workers cannot be had, or are lost again and again."""
        stored = self._store(work.version, weights)
        for _ in range(_ATTEMPTS):
            worker = self._take()
            try:
                trained, answer, saved = self._ray.get(worker.train.remote(work, state, stored, with_buffers))
            except self._ray.exceptions.RayError as error:
                if self._closed.is_set():
                    raise ClientError("the simulation has ended") from None
                if self._is_of_the_function(error):
                    self._ready.put((worker, None))
                    raise error.cause from error
                self._replace(worker)
                _log.warning("the Ray worker that trained client %d in round %d was lost, and the training begins again on "
                             "another: %s", work.client, work.round, _first_line(error))
                continue
            self._ready.put((worker, None))
            result[:] = trained
            return answer, saved
        raise ClientError(f"client {work.client}'s training in round {work.round} was lost with {_ATTEMPTS} of Ray's workers, "
                          "one after the other; look for what ends them, such as a lack of memory")

    def _is_of_the_function(self, error) -> bool:
        """Whether a worker's error is what the user's function raised, and not that of a machine that was lost."""
        errors = self._ray.exceptions
        return isinstance(error, errors.RayTaskError) and not isinstance(error.cause, errors.RayError)

    def _store(self, version: int, weights: np.ndarray):
        """The weights in Ray's object store, where each version is put once; all clients have the same."""
        with self._lock:
            if self._version != version:
                self._weights, self._version = self._ray.put(weights), version
            return self._weights

    def _take(self):
        """A worker that is ready; it is put back, or replaced."""
        waited = 0.0
        while not self._closed.is_set():
            if self._hopeless is not None:
                raise ClientError(self._hopeless)
            try:
                worker, error = self._ready.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                waited += _LOOK_SECONDS
                if waited == _PATIENCE_SECONDS:
                    _log.warning("no Ray worker is free for %.0f s: each wants %s, and the cluster has %s", waited,
                                 self._options, self._ray.cluster_resources())
                continue
            if error is None:
                self._failed_starts = 0
                return worker
            if not self._closed.is_set():
                self._note_failed_start(worker, error)
        raise ClientError("the simulation has ended")

    def _start(self) -> None:
        worker = self._make.remote(self._functions)
        with self._lock:
            self._workers.add(worker)
        worker.ready.remote().future().add_done_callback(lambda ready: self._ready.put((worker, ready.exception())))

    def _note_failed_start(self, worker, error: BaseException) -> None:
        """One whose functions cannot be unpickled will never start; one that was lost while it started may."""
        self._failed_starts += 1
        if getattr(error, "actor_init_failed", False) or self._failed_starts >= _ATTEMPTS:
            self._hopeless = f"no Ray worker can be started: {error}"
        else:
            _log.warning("a Ray worker was lost while it started, and another one is started: %s", _first_line(error))
            self._replace(worker)

    def _replace(self, worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        self._ray.kill(worker)
        self._start()

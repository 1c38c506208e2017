"""Federated learning with your own training loop. `terse.join` takes part in a run, `terse.Run` describes one."""

from . import codecs
from ._evaluator import Evaluated, serve_evaluator
from ._fleet import Fleet, Round, attach, join
from ._reader import StoredRun, Table
from ._reader import open_run as open  # terse.open
from ._run import Run
from ._simulate import Simulation, Work, simulate
from ._version import __version__
from .errors import ClientError, CodecError, ForkedProcess, MalformedMessage, RunMismatch, TerseError

__all__ = ["ClientError", "CodecError", "Evaluated", "Fleet", "ForkedProcess", "MalformedMessage", "Round", "Run",
           "RunMismatch", "Simulation", "StoredRun", "Table", "TerseError", "Work", "__version__", "attach", "codecs",
           "join", "open", "serve_evaluator", "simulate"]

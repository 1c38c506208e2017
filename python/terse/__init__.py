"""Federated learning with your own training loop. `terse.join` takes part in a run, `terse.Run` describes one."""

from . import codecs
from ._fleet import Fleet, Round, attach, join
from ._reader import StoredRun, Table
from ._reader import open_run as open  # terse.open
from ._run import Run
from ._simulate import Simulation, Work, simulate
from ._version import __version__
from .errors import ClientError, ForkedProcess, RunMismatch, TerseError

__all__ = ["ClientError", "Fleet", "ForkedProcess", "Round", "Run", "RunMismatch", "Simulation", "StoredRun", "Table", "TerseError",
           "Work", "__version__", "attach", "codecs", "join", "open", "simulate"]

"""Federated learning with your own training loop. `terse.join` takes part in a run, `terse.Run` describes one."""

from . import codecs
from ._fleet import Fleet, Round, attach, join
from ._run import Run
from ._version import __version__
from .errors import ClientError, ForkedProcess, RunMismatch, TerseError

__all__ = ["ClientError", "Fleet", "ForkedProcess", "Round", "Run", "RunMismatch", "TerseError", "__version__", "attach",
           "codecs", "join"]

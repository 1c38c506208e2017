"""The ways to a client: a process that is started, and when something killed it started again, or one that is there."""

import collections
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
from typing import List, Optional

from .errors import ClientError

_LAST_LINES = 5
_END_SECONDS = 15.0
_FD_VARIABLE = "TERSE_TRAINER_FD"


# The programs that no wheel holds: they link LibTorch.
_INSTALLED_APART = {"terse-simulate": "install the Debian package terse-simulate"}


def find_program(name: str) -> str:
    """The path of one of Terse's programs: from TERSE_BIN, from this package, or from PATH."""
    folders = [os.environ.get("TERSE_BIN"), str(pathlib.Path(__file__).parent / "bin")]
    for folder in filter(None, folders):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    path = shutil.which(name)
    if path is None:
        remedy = _INSTALLED_APART.get(name, "install the package from a wheel")
        raise ClientError(f"there is no {name}: neither in this package, nor in TERSE_BIN, nor in PATH; {remedy}, or name the folder "
                          "with the built programs in TERSE_BIN")
    return path


class ClientProcess:
    """One process of terse-client, whose trainer is this process, and the socket between them.

    As the other ways, it has `socket`, `end`, and `gone`, which is asked after the other end has closed it.
    """

    def __init__(self, arguments: List[str]):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        command = [find_program("terse-client"), *arguments, "--trainer-fd", str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            ours.close()
            raise ClientError(f"{command[0]} cannot be started: {error}") from error
        finally:
            theirs.close()
        self.socket = ours
        self._last = collections.deque(maxlen=_LAST_LINES)
        self._reader = threading.Thread(target=self._pass_on, name="terse-client-log", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: Optional[float] = None) -> Optional[int]:
        """Its exit code, or -SIGNAL; None when it still runs after so many seconds."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(1)
        return code

    def end(self) -> None:
        """Waits for its end, which follows from a closed socket, and kills it when it does not come."""
        if self.wait(_END_SECONDS) is None:
            self._process.kill()
            self.wait()

    def gone(self) -> str:
        """What happened, where a new client can go on; raises ClientError where none can."""
        code = self.wait(_END_SECONDS)
        if code is not None and code < 0:
            return f"the client process was ended by signal {-code}; starting it again"
        words = "\n".join(self._last)
        if code == 0:
            raise ClientError(f"the client process was stopped before the run was over; join again to go on.\n{words}")
        raise ClientError(f"the client process ended with code {code}:\n{words}")

    def _pass_on(self):
        for line in self._process.stdout:
            text = line.decode(errors="replace")
            self._last.append(text.rstrip("\n"))
            sys.stderr.write(text)
            sys.stderr.flush()


class StartedByClient:
    """The client that started this process (terse-client --trainer)."""

    pid = os.getppid()

    def __init__(self):
        number = os.environ.get(_FD_VARIABLE)
        if number is None:
            raise ClientError(f"no client started this process: {_FD_VARIABLE} is not set. Start it with terse-client --trainer, "
                              "or use terse.join, which starts a client")
        self.socket = socket.socket(fileno=os.dup(int(number)))
        self.socket.set_inheritable(False)

    def end(self) -> None:
        pass

    def gone(self) -> str:
        raise ClientError("the client that started this process has ended")


class AtSocket:
    """A client that waits for its trainer at a path (terse-client --trainer-socket)."""

    pid = None

    def __init__(self, path: str):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        try:
            self.socket.connect(path)
        except OSError as error:
            self.socket.close()
            raise ClientError(f"no client waits for a trainer at {path}: {error}") from error

    def end(self) -> None:
        pass

    def gone(self) -> str:
        if not os.path.exists(self._path):
            raise ClientError(f"the client at {self._path} has ended")
        return f"the client at {self._path} closed the connection; connecting again"

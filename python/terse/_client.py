"""The client process: found, started and, when something killed it, started again."""

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


def find_program(name: str) -> str:
    """The path of one of Terse's programs: from TERSE_BIN, from this package, or from PATH."""
    folders = [os.environ.get("TERSE_BIN"), str(pathlib.Path(__file__).parent / "bin")]
    for folder in filter(None, folders):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    path = shutil.which(name)
    if path is None:
        raise ClientError(f"there is no {name}: neither in this package, nor in TERSE_BIN, nor in PATH; install the package "
                          "from a wheel, or name the folder with the built programs in TERSE_BIN")
    return path


class ClientProcess:
    """One process of terse-client, whose trainer is this process, and the socket between them."""

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

    def end(self, seconds: float) -> None:
        """Waits for its end, which follows from a closed socket, and kills it when it does not come."""
        if self.wait(seconds) is None:
            self._process.kill()
            self.wait()

    def last_words(self) -> str:
        return "\n".join(self._last)

    def _pass_on(self):
        for line in self._process.stdout:
            text = line.decode(errors="replace")
            self._last.append(text.rstrip("\n"))
            sys.stderr.write(text)
            sys.stderr.flush()

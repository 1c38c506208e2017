"""Frames of the trainer protocol over a Unix socket (docs/TRAINER.md)."""

import enum
import json
import os
import socket
import struct

from ._version import __version__

_HEADER = struct.Struct("<IIQ")
PROTOCOL = 1


def hello(model, samples: int, **has):
    """The answer to a request to open a run, with a model of _models.adapt."""
    return dict(protocol=PROTOCOL, trainer=f"terse for Python {__version__}", dtype=model.dtype, result=model.result,
                layout=[{"name": e.name, "shape": list(e.shape), "kind": e.kind} for e in model.entries()],
                samples=samples, device=model.device, in_place=model.in_place, has_start=False, **has)


class Kind(enum.IntEnum):
    OPEN = 1
    MEMORY = 2
    START = 3
    TRAIN = 4
    GRADIENT = 5
    MASK = 6
    SAVE = 7
    RESTORE = 8
    GO_ON = 9
    SEALED = 10
    FINISHED = 11
    EVALUATE = 32
    DONE = 64
    FAILED = 65
    PROGRESS = 66


class Gone(Exception):
    """The other end closed the connection."""


class Channel:
    """One end of a connection. Not thread-safe."""

    def __init__(self, sock: socket.socket):
        self._socket = sock

    def close(self) -> None:
        self._socket.close()

    def send(self, kind: Kind, body: bytes = b"") -> None:
        try:
            self._socket.sendall(_HEADER.pack(kind, 0, len(body)))
            self._socket.sendall(body)
        except OSError as error:
            raise Gone from error

    def send_json(self, kind: Kind, **members) -> None:
        self.send(kind, json.dumps(members).encode())

    def fail(self, code: str, message: str) -> None:
        """Answers a request with a failure; `code` is the name of a gRPC status."""
        self.send_json(Kind.FAILED, code=code, message=message, details="")

    def receive(self):
        """The next frame: its kind, its body, and the descriptor of the file that came along, or None."""
        header, file = self._read_header()
        kind, _, size = _HEADER.unpack(header)
        try:
            kind = Kind(kind)
        except ValueError:
            pass  # of a later version: whoever handles it says that it is not known
        return kind, bytes(self._read(size)), file

    def _read_header(self):
        header, file = b"", None
        while len(header) < _HEADER.size:
            try:
                part, files, _, _ = socket.recv_fds(self._socket, _HEADER.size - len(header), 1)
            except OSError as error:
                raise Gone from error
            if not part:
                raise Gone
            if files:
                file = files[0]
                os.set_inheritable(file, False)
            header += part
        return header, file

    def _read(self, size):
        body = bytearray(size)
        view = memoryview(body)
        while len(view) > 0:
            try:
                got = self._socket.recv_into(view)
            except OSError as error:
                raise Gone from error
            if got == 0:
                raise Gone
            view = view[got:]
        return body

"""The requests of the trainer protocol that all programs answer alike (docs/TRAINER.md)."""

import json
from typing import Any, Callable, Dict, Optional

from ._channel import PROTOCOL, Channel, Kind
from ._shared import SharedVectors

_NOTICES = (Kind.SEALED, Kind.FINISHED)  # nothing answers them


class Responder:
    """Answers the requests on a connection. A subclass has `_channel`, `_open`, and what else it answers in `_handlers`."""

    _role = "trainer"  # for people

    _channel: Channel

    def __init__(self) -> None:
        self._vectors: Optional[SharedVectors] = None
        self._handlers: Dict[Kind, Callable[[bytes], None]] = {}

    def _open(self, request: Dict[str, Any]) -> None:
        """Answers a request to open a run, by this version of the protocol."""
        raise NotImplementedError

    def _handle(self, kind, body: bytes, file: Optional[int]) -> None:
        if kind in self._handlers:
            self._handlers[kind](body)
        elif kind == Kind.OPEN:
            request = json.loads(body)
            if request["protocol"] == PROTOCOL:
                self._open(request)
            else:
                self._channel.fail("FAILED_PRECONDITION", f"this package speaks version {PROTOCOL} of the trainer protocol")
        elif kind == Kind.MEMORY:
            self._vectors = SharedVectors(file, json.loads(body)["elements"])
            self._done()
        elif kind not in _NOTICES:
            self._channel.fail("UNIMPLEMENTED", f"this {self._role} does not know requests of kind {int(kind)}")

    def _done(self, **members) -> None:
        self._channel.send_json(Kind.DONE, **members)

"""The exceptions of this package, all of them a TerseError."""


class TerseError(Exception):
    """Something about a run, its client or its coordinator; the message says what to do."""


class ClientError(TerseError):
    """The client process ended: it cannot start, or the coordinator refused it. Its last words are in the message."""


class RunMismatch(TerseError):
    """The model or a call does not fit the run."""


class ForkedProcess(TerseError):
    """A fleet was used in a process that was forked from the one that joined it, such as a data loader's worker."""


class CodecError(TerseError):
    """A codec's setting, or an array that is handed to one, is not usable; the message names the tensor and says what to do."""


class MalformedMessage(CodecError):
    """Bytes that the codec could not have made for this model: cut off, damaged, or of another codec or model."""

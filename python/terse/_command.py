"""The command `terse`, which the package installs: it becomes the program that does the work."""

import os
import sys
from typing import List, Optional

from ._client import find_program
from ._version import __version__
from .errors import ClientError

_USAGE = """usage: terse simulate [OPTION...] RUN_FILE
       terse --version
       terse --help

simulate   simulates a fleet on this machine, as terse-simulate does: terse simulate --clients 1000 --processes 2 run.toml.
           terse simulate --help names its options
"""
_PROGRAMS = {"simulate": "terse-simulate"}
_USAGE_ERROR = 2


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command line, without the name of the command. Returns an exit code, or not at all where it becomes a program."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["--version"]:
        print(__version__)
        return 0
    if words[:1] in (["--help"], ["-h"]):
        print(_USAGE, end="")
        return 0
    if not words or words[0] not in _PROGRAMS:
        said = f"'{words[0]}' is no command" if words else "a command is missing"
        print(f"terse: {said}\n{_USAGE}", end="", file=sys.stderr)
        return _USAGE_ERROR
    program = _PROGRAMS[words[0]]
    try:
        path = find_program(program)
    except ClientError as error:
        print(f"terse: {error}", file=sys.stderr)
        return 1
    os.execv(path, [program, *words[1:]])

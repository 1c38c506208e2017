"""Runs of a Terse coordinator in Weights & Biases: logs what `tersectl follow --json` prints. Needs `wandb` 0.19.10 or later
(`pip install terse[wandb]`).

    tersectl follow --json | python3 -m terse.wandb --dir DIR

Without WANDB_MODE in the environment the mode is "offline": nothing leaves the machine, and `wandb sync DIR/wandb/offline-run-*`
uploads it later. A run's id is its lineage, so that a run that was followed by several processes is one run after `wandb sync`.
"""

import argparse
import json
import os
import pathlib
import sys
from typing import Any, Dict, Iterable, List, Mapping, Optional

import wandb

from .errors import TerseError

__all__ = ["follow"]

_POSITIONS = "terse-follow"


class _Followed:
    """One run, as W&B has it. The position, the newest round that was logged, lies beside W&B's files."""

    def __init__(self, line: Mapping[str, Any], directory: pathlib.Path, project: Optional[str]) -> None:
        self._file = directory / _POSITIONS / f"{line['lineage']}.json"
        position = json.loads(self._file.read_text()) if self._file.exists() else {"round": 0, "state": ""}
        self._round, self.state = int(position["round"]), str(position["state"])
        self._run: Any = None
        if self.state:
            return
        config = dict(line["status"]["config"])
        self._run = wandb.init(id=line["lineage"], name=line["run"], project=project, dir=str(directory), config=config,
                               mode=_mode(), resume=None if _mode() == "offline" else "allow", reinit="create_new",
                               settings=wandb.Settings(console="off", silent=True))

    def log(self, line: Mapping[str, Any]) -> None:
        number = int(line["round"]["id"])
        if self.state or number <= self._round:
            return
        if line["scalars"]:
            self._run.log({**line["scalars"], "_timestamp": line["round"]["committed_us"] / 1e6}, step=number)
        self._keep(number)

    def end(self, state: str) -> None:
        if self.state:
            return
        self._run.summary["terse/state"] = state
        self._run.finish(exit_code=0 if state == "finished" else 1)
        self.state = state
        self._keep(self._round)

    def close(self) -> None:
        """The run goes on without this process."""
        if not self.state:
            self._run.finish()

    def _keep(self, number: int) -> None:
        self._round = number
        self._file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps({"round": number, "state": self.state}))
        temporary.replace(self._file)


def _mode() -> Any:
    return os.environ.get("WANDB_MODE", "offline")


def follow(lines: Iterable[str], directory: str = ".", project: Optional[str] = None) -> int:
    """Logs runs to Weights & Biases until the lines end.

    lines: what `tersectl follow --json` prints, for example standard input. Each committed round is a step, whose number is the
    round's, with the scalars of docs/FOLLOW.md, at the time of its commit; the run's configuration is W&B's config.
    directory: where W&B keeps its files (DIRECTORY/wandb), and the position of each run (DIRECTORY/terse-follow), after which
    a later process goes on.
    project: by default that of WANDB_PROJECT, or "terse".

    Returns how many runs there were. A run that was stopped or deleted is marked as failed. Raises TerseError for a line that is
    none of them.
    """
    where = pathlib.Path(directory)
    where.mkdir(parents=True, exist_ok=True)
    project = project or os.environ.get("WANDB_PROJECT") or "terse"
    runs: Dict[str, _Followed] = {}
    try:
        for text in lines:
            try:
                line = json.loads(text)
                kind, lineage = line["type"], line["lineage"]
            except (ValueError, KeyError, TypeError) as error:
                raise TerseError(f"{text[:80]!r} is no line of `tersectl follow --json`") from error
            if kind == "run":
                if lineage not in runs:
                    runs[lineage] = _Followed(line, where, project)
            elif kind == "round":
                runs[lineage].log(line)
            elif kind == "end":
                runs[lineage].end(line["state"])
    finally:
        for run in runs.values():
            run.close()
    return len(runs)


def _main(arguments: Optional[List[str]] = None) -> int:
    """The command `python3 -m terse.wandb`."""
    parser = argparse.ArgumentParser(prog="python3 -m terse.wandb", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dir", default=".", help="folder for W&B's files (default: the current one)")
    parser.add_argument("--project", help="W&B's project (default: that of WANDB_PROJECT, or terse)")
    options = parser.parse_args(arguments)
    try:
        follow(sys.stdin, options.dir, options.project)
    except TerseError as error:
        print(f"terse.wandb: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())

"""Metrics by name, as they travel in the trainer protocol's JSON (docs/TRAINER.md, "Metrics")."""

import math
import re
from typing import Any, Dict, List, Mapping

from .errors import RunMismatch

_NAME = re.compile(r"[A-Za-z0-9_./@-]([A-Za-z0-9_./@ -]{0,62}[A-Za-z0-9_./@-])?")
_MOST = 64
_LARGEST = 1e300


def named(kind: str, metrics: Mapping[str, float], samples: int) -> List[Dict[str, Any]]:
    """The metrics of one kind ("training", "evaluation", "test"), each a mean over so many samples.

    Raises RunMismatch, with the metric's name, for what the client would refuse.
    """
    if samples < 1:
        raise RunMismatch(f"{kind} metrics are means over at least one sample, not {samples}")
    if len(metrics) > _MOST:
        raise RunMismatch(f"{len(metrics)} {kind} metrics are more than the {_MOST} that may come together")
    return [{"kind": kind, "name": _checked_name(kind, name), "value": _finite(kind, name, value), "samples": int(samples)}
            for name, value in metrics.items()]


def _finite(kind: str, name: str, value: Any) -> float:
    """The value as a float; RunMismatch where it is none, or not finite."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise RunMismatch(f"the {kind} metric '{name}' is no number: {error}") from None
    if not math.isfinite(number) or abs(number) > _LARGEST:
        raise RunMismatch(f"the {kind} metric '{name}' is {number}; metrics are finite: leave it out where there is none")
    return number


def _checked_name(kind: str, name: Any) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise RunMismatch(f"a {kind} metric is called {name!r}; names have 1 to 64 of the characters A-Z a-z 0-9 _ - . / @ and inner spaces")

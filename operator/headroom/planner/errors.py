"""What cannot be planned: the rule, the value received and the next step, in one sentence."""

from __future__ import annotations

import math


class ImpossiblePlan(ValueError):  # noqa: N818  (named by what it says)
    """No number of replicas answers this; the message says what to change."""


def require(holds: bool, rule: str, received: object, next_step: str) -> None:
    """Raise ImpossiblePlan unless `holds`."""
    if not holds:
        raise ImpossiblePlan(f"{rule}, received {received}: {next_step}")


def positive(name: str, value: float, next_step: str) -> None:
    """Raise ImpossiblePlan unless the value is finite and above 0."""
    require(0 < value < math.inf, f"{name} is above 0 and finite", f"{value:g}", next_step)


def share(name: str, value: float, next_step: str) -> None:
    """Raise ImpossiblePlan unless the value lies between 0 and 1, both excluded."""
    require(0 < value < 1, f"{name} lies between 0 and 1", f"{value:g}", next_step)

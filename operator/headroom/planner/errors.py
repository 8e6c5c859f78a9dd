"""Errors of a plan: the rule, the value and the next step."""

from __future__ import annotations

import math


class ImpossiblePlan(ValueError):  # noqa: N818  (named by what it says)
    """No number of replicas satisfies this; the message says what to change."""


def require(holds: bool, rule: str, got: object, next_step: str) -> None:
    """Raise ImpossiblePlan unless `holds`."""
    if not holds:
        raise ImpossiblePlan(f"{rule}; got {got}. {next_step}.")


def positive(name: str, value: float, next_step: str) -> None:
    """Raise ImpossiblePlan unless the value is finite and above 0."""
    require(0 < value < math.inf, f"{name} must be above 0 and finite", f"{value:g}", next_step)


def share(name: str, value: float, next_step: str) -> None:
    """Raise ImpossiblePlan unless the value is between 0 and 1, both excluded."""
    require(0 < value < 1, f"{name} must be between 0 and 1", f"{value:g}", next_step)

"""Requirements of the demo, and one check of a measured value against them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The figures that a run is held to."""

    gpus: int
    least_attainment: float
    last_stretch_s: float
    latest_send_s: float
    longest_unanswered_s: float
    full_length: bool = True
    """Whether the window is long enough to show a removal and a settled end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement and what was found."""

    name: str
    measured: str
    required: str
    held: bool
    otherwise: str = ""
    """Consequence for the other figures where it does not hold, and the remedy."""

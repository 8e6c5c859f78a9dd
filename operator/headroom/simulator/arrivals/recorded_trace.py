"""Recorded workloads as values: every request's arrival, or requests per bin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class TraceError(ValueError):
    """A malformed trace file: the message names the file, the line, the rule and the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """Every request's arrival, in seconds from the start of the recording."""

    name: str
    arrivals_s: Vector
    """[requests], sorted, from 0; for a long trace a view of a file."""

    @property
    def duration_s(self) -> float:
        """The recording's length: the first whole second after its last request."""
        return math.floor(float(self.arrivals_s[-1])) + 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    """Requests per bin; the instants within a bin were not recorded."""

    name: str
    bin_s: float
    requests: Vector
    """[bins]."""

    @property
    def duration_s(self) -> float:
        """Seconds that the bins cover."""
        return self.bin_s * len(self.requests)


Trace = RequestTrace | RateTrace

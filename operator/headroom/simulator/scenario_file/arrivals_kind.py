"""Interface of every kind of arrivals in a scenario file, and the source that it reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from headroom.simulator.arrivals.recorded_trace import Trace
from headroom.simulator.arrivals.recording import RecordedService
from headroom.simulator.scenario import Arrivals
from headroom.simulator.scenario_file.table import Table


class Library(Protocol):
    """The source of traces and recordings."""

    def trace(self, named: str) -> Trace:
        """Return a trace by shipped name or path."""
        ...

    def recording(self, path: str) -> Mapping[str, RecordedService]:
        """Return a recording's services by name."""
        ...


class Kind(Table, ABC):
    """The interface of all kinds."""

    @abstractmethod
    def value(self, stream: str, library: Library) -> Arrivals:
        """Return the arrivals of the service `stream`.

        Raises:
            ValueError: they are invalid.
        """

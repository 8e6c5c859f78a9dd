"""Traces and recordings that a scenario names: shipped ones, and files next to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from headroom.simulator.arrivals.recorded_trace import Trace, TraceError
from headroom.simulator.arrivals.recording import RecordedService, read_recording
from headroom.simulator.arrivals.trace_file import read_trace
from headroom.simulator.traces import shipped_trace, trace_names

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Shipped traces by name, and files relative to a folder; each is read once."""

    folder: Path | None
    """None: files are not available."""
    _traces: dict[str, Trace] = field(default_factory=dict)
    _recordings: dict[str, Mapping[str, RecordedService]] = field(default_factory=dict)

    def trace(self, named: str) -> Trace:
        """Return a trace by shipped name or path.

        Raises:
            TraceError: it does not exist, or is malformed.
        """
        if named in trace_names():
            return shipped_trace(named)
        if not named.endswith((".csv", ".csv.gz")):
            known = ", ".join(trace_names())
            raise TraceError(
                f"trace must be a .csv or .csv.gz file, or one of {known}; got {named!r:.80}"
            )
        if named not in self._traces:
            self._traces[named] = self._read("trace", named, _trace)
        return self._traces[named]

    def recording(self, path: str) -> Mapping[str, RecordedService]:
        """Return a recording's services by name.

        Raises:
            TraceError: it does not exist, or is malformed.
        """
        if path not in self._recordings:
            self._recordings[path] = self._read("recording", path, _recording)
        return self._recordings[path]

    def _read(self, what: str, path: str, read: Callable[[Path, str], Read]) -> Read:
        if self.folder is None:
            raise TraceError(
                f"{what} must not be a file, because the scenario is not one; got {path!r:.80}"
            )
        try:
            return read(self.folder / path, path)
        except OSError as error:
            raise TraceError(
                f"{what} must be a readable file; got {path!r:.80}: {error.strerror}"
            ) from error


def _trace(path: Path, name: str) -> Trace:
    with path.open("rb") as stream:
        return read_trace(stream, name)


def _recording(path: Path, name: str) -> Mapping[str, RecordedService]:
    with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
        return read_recording(lines, name)

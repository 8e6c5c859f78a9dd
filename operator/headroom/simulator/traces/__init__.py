"""The shipped traces (recorded workloads), by name, with their sources and licences."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from headroom.simulator.arrivals.recorded_trace import Trace, TraceError
from headroom.simulator.arrivals.trace_file import read_trace

_SUFFIX = ".csv.gz"


def trace_names() -> tuple[str, ...]:
    """Return the names of all shipped traces, sorted."""
    entries = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


@lru_cache(maxsize=64)
def shipped_trace(name: str, column: str | None = None) -> Trace:
    """Return a shipped trace, which is read once; of a family, one column or the sum.

    Raises:
        TraceError: no trace, or no column of it, has this name.
    """
    known = trace_names()
    if name not in known:
        raise TraceError(f"a shipped trace must be one of {', '.join(known)}; got {name!r:.80}")
    with files(__name__).joinpath(name + _SUFFIX).open("rb") as stream:
        return read_trace(stream, name, column)

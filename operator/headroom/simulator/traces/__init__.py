"""The shipped traces (recorded workloads), by name, with their sources and licences."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from headroom.simulator.arrivals.trace_file import Trace, TraceError, read_trace

_SUFFIX = ".csv.gz"


def trace_names() -> tuple[str, ...]:
    """Return the names of all shipped traces, sorted."""
    entries = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


@lru_cache(maxsize=16)
def shipped_trace(name: str) -> Trace:
    """Return a shipped trace, which is read once.

    Raises:
        TraceError: no trace has this name.
    """
    known = trace_names()
    if name not in known:
        raise TraceError(f"a shipped trace must be one of {', '.join(known)}; got {name!r:.80}")
    with files(__name__).joinpath(name + _SUFFIX).open("rb") as stream:
        return read_trace(stream, name)

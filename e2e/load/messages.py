"""The generator's messages: one compact JSON object per line.

| kind     | said                                                           |
|----------|----------------------------------------------------------------|
| started  | once: when the first instant is due, and what will be sent      |
| progress | every second                                                    |
| window   | at the end, one per window of arrivals                          |
| summary  | at the very end                                                 |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from load.statistics import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The replay begins."""

    unix_s: float
    """Wall clock at the window's start, to compare this run with other records."""
    requests: int
    duration_s: float
    target_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counts of the last second."""

    at_s: float
    due: int
    """Requests that the trace wanted sent since the start."""
    in_flight: int
    tally: Tally
    """Requests that ended in this second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All requests that were due in one window."""

    start_s: float
    duration_s: float
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole run."""

    requests: int
    """Requests that were due; each has exactly one outcome in the tally."""
    tally: Tally
    retried: int
    """Sent a second time, because an idle connection was found closed."""
    connections: int
    """Connections that were opened."""
    late_p99_s: float
    """How late the generator itself began to send; the latencies include it."""
    failures: tuple[tuple[str, int], ...] = ()
    """The commonest failures in the client's words, with counts."""
    interrupted: bool = False


Message = Started | Progress | Window | Summary
KINDS: dict[str, type[Message]] = {
    "started": Started,
    "progress": Progress,
    "window": Window,
    "summary": Summary,
}


def write(message: Message) -> str:
    """Return one line, without its end."""
    fields = asdict(message)
    if not isinstance(message, Started):
        fields["tally"] = message.tally.to_json()
    kind = type(message).__name__.lower()
    return json.dumps({"kind": kind, **fields}, separators=(",", ":"))


def read(line: str) -> Message | None:
    """Read one line; None for a line that is no message of the generator.

    Raises:
        ValueError: a message whose fields are not those of its kind.
    """
    try:
        body = json.loads(line)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.get("kind") not in KINDS:
        return None
    fields = {key: value for key, value in body.items() if key != "kind"}
    if isinstance(fields.get("tally"), Mapping):
        fields["tally"] = Tally.from_json(fields["tally"])
    if "failures" in fields:
        fields["failures"] = tuple((str(what), int(n)) for what, n in fields["failures"])
    try:
        return KINDS[body["kind"]](**fields)
    except TypeError as error:
        raise ValueError(f"a {body['kind']} message has unknown fields: {error}") from error


def read_all(text: str) -> list[Message]:
    """All messages of a log, in order; a last line that was cut off is left out."""
    return list(_messages(text.splitlines()))


def _messages(lines: Iterable[str]) -> Iterable[Message]:
    for line in lines:
        message = read(line)
        if message is not None:
            yield message

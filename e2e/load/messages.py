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
from dataclasses import asdict, dataclass, field

from load.log_lines import body_of
from load.outcomes import Outcome
from load.statistics import Tally

SHOWN_PERCENTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The replay begins."""

    unix_s: float
    """Wall clock at the window's start, to compare this run with other records."""
    requests: int | None
    """None in a closed loop: the answers decide how many there will be."""
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
    """Delay with which the generator itself began to send; the latencies include it."""
    failures: tuple[tuple[str, int], ...] = ()
    """The commonest failures in the client's words, with counts."""
    interrupted: bool = False
    tries: int = 0
    """Tries that were made: each request's first, and its retries."""
    first: Tally = field(default_factory=Tally)
    """Outcome of the first try of each request."""

    def as_text(self) -> str:
        """Return a line for people: first tries in time, late and failed; percentiles; tries."""
        first = self.first
        late = first.outcomes[Outcome.OK] - first.within
        shares = ", ".join(
            f"{_percent(count, first.requests)} {word}"
            for count, word in ((first.within, "in time"), (late, "late"), (first.missed, "failed"))
        )
        quantiles = ", ".join(
            f"p{100 * share:g} {_seconds(self.tally.quantile_s(share))}"
            for share in SHOWN_PERCENTILES
        )
        return (
            f"{self.requests} requests, first tries: {shares}; to the last try: "
            f"{_percent(self.tally.within, self.tally.requests)} in time, {quantiles}; "
            f"{self.tries} tries, {self.connections} connections"
        )


def _percent(part: int, whole: int) -> str:
    return f"{100.0 * part / whole:.1f} %" if whole else "none"


def _seconds(time_s: float | None) -> str:
    return "unknown" if time_s is None else f"{time_s:.3f} s"


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
    if isinstance(message, Summary):
        fields["first"] = message.first.to_json()
    kind = type(message).__name__.lower()
    return json.dumps({"kind": kind, **fields}, separators=(",", ":"))


def read(line: str) -> Message | None:
    """Read one line; None for a line that is no message of the generator.

    Raises:
        ValueError: a message whose fields are not those of its kind.
    """
    body = body_of(line, KINDS)
    if body is None:
        return None
    fields = {key: value for key, value in body.items() if key != "kind"}
    for name in ("tally", "first"):
        if isinstance(fields.get(name), Mapping):
            fields[name] = Tally.from_json(fields[name])
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

"""Faults of a page of metrics, and the page that each leaves."""

from __future__ import annotations

import random
from enum import StrEnum

from reliability.telemetry.figures import MODEL, Figures


class Fault(StrEnum):
    """A fault of a page."""

    MISSING = "no page"
    STALE = "an earlier page with its time, as from a Prometheus"
    EMPTY = "an empty page"
    HTML = "HTML"
    CUT = "cut in the middle of a line"
    PARTIAL = "series missing"
    NAN = "NaN"
    NEGATIVE = "negative"
    INFINITE = "+Inf"
    GARBLED = "letters for a number"
    TWICE = "series twice"
    OTHER_MODEL = "another model's series"
    NEIGHBOUR = "the neighbour's model label next to the own"
    RESTARTED = "counters restart"
    FALLING = "a histogram that falls"
    INFLATED = "absurdly many arrivals at each scrape"


TELLS_NOTHING = frozenset(Fault) - {
    Fault.STALE,
    Fault.NEIGHBOUR,
    Fault.RESTARTED,
    Fault.INFLATED,
}
"""Pages with these faults are no sample: never half of one."""


def page(served: int, model: str = MODEL) -> str:
    """Expose a server that answered this many requests one by one, and has none in flight."""
    return Figures.of(served).text(model)


def spoilt(text: str, fault: Fault, chance: random.Random) -> str | None:
    """Return the page with the fault; None where no page comes."""
    lines = text.splitlines(keepends=True)
    place = chance.randrange(len(lines))
    name = lines[place].rpartition(" ")[0]
    match fault:
        case Fault.MISSING | Fault.STALE:
            return None
        case Fault.EMPTY:
            return ""
        case Fault.HTML:
            return "<html><body>Bad gateway</body></html>\n"
        case Fault.CUT:
            return text[: chance.randrange(1, len(text) - 1)]
        case Fault.PARTIAL:
            return "".join(lines[:_NEEDED][: chance.randrange(_NEEDED)])
        case Fault.NAN | Fault.NEGATIVE | Fault.INFINITE | Fault.GARBLED:
            lines[place] = f"{name} {_VALUES[fault]}\n"
            return "".join(lines)
        case Fault.TWICE:
            return text + lines[place]
        case Fault.OTHER_MODEL:
            return text.replace(MODEL, "bert")
        case Fault.NEIGHBOUR:
            return text + page(10**9, "bert")
        case Fault.FALLING:
            bucket, _, count = next(line for line in lines if 'le="0.5"' in line).rpartition(" ")
            return text.replace(f"{bucket} {count}", f"{bucket} {int(count) + 1}\n")
        case Fault.INFLATED:
            return page(10**15)
    return text


_NEEDED = 4
"""Lines without which there is no sample, at the top of the page."""
_VALUES = {
    Fault.NAN: "NaN",
    Fault.NEGATIVE: "-7",
    Fault.INFINITE: "+Inf",
    Fault.GARBLED: "many",
}

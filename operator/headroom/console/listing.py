"""Selects the services of a page: search, state, order, a hundred per page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from headroom.console.read_model import ServiceEntry
from headroom.console.service_state import State
from headroom.console.summary import ServiceSummary

PER_PAGE = 100
LONGEST_SEARCH = 100

_Key = Callable[[ServiceSummary], tuple[float, str, str]]


def _descending(value: Callable[[ServiceSummary], float | None]) -> _Key:
    """Return a key that sorts the largest first, and unknown last."""

    def key(row: ServiceSummary) -> tuple[float, str, str]:
        number = value(row)
        return (float("inf") if number is None else -number, row.namespace, row.name)

    return key


ORDERS: Mapping[str, _Key | None] = {
    "attention": None,
    "name": lambda row: (0.0, row.namespace, row.name),
    "arrivals": _descending(lambda row: row.arrivals_rps),
    "waiting": _descending(lambda row: row.waiting),
    "utilization": _descending(lambda row: row.utilization),
    "accelerators": _descending(lambda row: row.accelerators),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The services to show, and their order."""

    search: str = ""
    state: State | None = None
    namespace: str | None = None
    order: str = "attention"
    number: int = 1
    """Number of the page, from 1."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Query:
        """Read the query of a URL; unknown values are ignored, since links may be old."""
        number, states = given.get("page", ""), {state.lower(): state for state in State}
        return cls(
            search=given.get("q", "").strip()[:LONGEST_SEARCH],
            state=states.get(given.get("state", "").lower()),
            namespace=given.get("namespace") or None,
            order=given.get("sort", "") if given.get("sort", "") in ORDERS else "attention",
            number=max(1, int(number)) if number.isdecimal() and len(number) < 7 else 1,
        )

    def address(self) -> str:
        """Return the URL of this query."""
        fields = {
            "q": self.search,
            "state": self.state.lower() if self.state else "",
            "namespace": self.namespace or "",
            "sort": "" if self.order == "attention" else self.order,
            "page": "" if self.number == 1 else str(self.number),
        }
        chosen = {key: value for key, value in fields.items() if value}
        return f"/?{urlencode(chosen)}" if chosen else "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The content of the page."""

    query: Query
    states: Mapping[State, int]
    """Services per state, of all that match the search."""
    accelerators: Mapping[str, int]
    """Accelerators per resource, of the same services."""
    rows: tuple[ServiceEntry, ...]
    """The rows of this page."""
    found: int
    """Rows of all pages."""

    @property
    def pages(self) -> int:
        """Return the number of pages, at least 1."""
        return max(1, -(-self.found // PER_PAGE))


def listing(entries: Sequence[ServiceEntry], query: Query) -> Listing:
    """Select and count; the entries are sorted, the worst first."""
    wanted = query.search.lower()
    within = [
        one for one in entries if wanted in f"{one.summary.namespace}/{one.summary.name}".lower()
    ]
    chosen = [one for one in within if query.state in (None, one.summary.state)]
    key = ORDERS[query.order]
    if key is not None:
        chosen.sort(key=lambda one: key(one.summary))
    accelerators: Counter[str] = Counter()
    for one in within:
        accelerators[one.summary.accelerator] += one.summary.accelerators or 0
    last = max(1, -(-len(chosen) // PER_PAGE))
    number = min(query.number, last)
    counted = Counter(one.summary.state for one in within)
    return Listing(
        query=replace(query, number=number),
        states={state: counted[state] for state in State if counted[state]},
        accelerators={name: held for name, held in sorted(accelerators.items()) if held},
        rows=tuple(chosen[(number - 1) * PER_PAGE : number * PER_PAGE]),
        found=len(chosen),
    )

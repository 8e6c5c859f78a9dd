"""Keeps the counters of series that a server no longer exposes, so that sums do not fall. Pure.

A server drops the series of a model version that it unloads, or of a worker that it replaces. The
sum over the others is smaller, which is no restart: what remains was counted long ago. Worked, two
versions with 1 000 000 and 500 000 requests: without the first, the second's 500 000 would be
taken for requests since the last page.
"""

from __future__ import annotations

from array import array
from collections.abc import Set
from dataclasses import dataclass
from weakref import ReferenceType, ref

from headroom.telemetry.pages.exposition import Layout, Page, Series
from headroom.telemetry.pages.recent_layouts import LayoutMemory

_MOST_KEPT = 1024
"""Series. A server with other series on each page is read as it is."""
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedPage:
    """A pod's page and, after its own series, those that earlier ones had.

    The memory of the reader has the layouts: the pods of one service may be many, and each may have
    thousands of series of its own.
    """

    own: ReferenceType[Layout]
    """Layout of the page itself."""
    layout: ReferenceType[Layout]
    values: array[float]


def remembered(memory: LayoutMemory, own: Layout, page: Page) -> ContinuedPage | None:
    """Return what is kept of a page, continued from its `own` layout; None if it is too large."""
    layouts = {own, page.layout}
    if not all(memory.going_on.add(one, True, len(one.series)) for one in layouts):
        return None
    return ContinuedPage(own=ref(own), layout=ref(page.layout), values=array("d", page.values))


def continued(before: ContinuedPage | None, page: Page, counters: Set[str]) -> Page:
    """Return the page with the counters, by their names, of series that are no longer there.

    A series that falls shows that the process has restarted: then nothing before it counts.
    """
    own, layout = (None, None) if before is None else (before.own(), before.layout())
    if before is None or layout is None or (page.layout is own and layout is own):
        return page
    then, now = _values(Page(layout, before.values), counters), _values(page, counters)
    gone = {key: one for key, one in then.items() if key not in now}
    restarted = any(now[key][1] < value for key, (_, value) in then.items() if key in now)
    if not gone or restarted or len(gone) > _MOST_KEPT:
        return page
    if page.layout is not own:
        series = tuple(series for series, _ in gone.values())
        layout = Layout((*page.layout.series, *series), page.layout.lines)
    return Page(layout, (*page.values, *(value for _, value in gone.values())))


def _values(page: Page, counters: Set[str]) -> dict[_Key, tuple[Series, float]]:
    return {
        (series.name, tuple(sorted(series.labels.items()))): (series, value)
        for series, value in zip(page.layout.series, page.values, strict=True)
        if series.name in counters
    }

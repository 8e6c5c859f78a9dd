"""Keeps the counters of series that a server no longer exposes, so that sums do not fall. Pure.

A server drops the series of a model version that it unloads, or of a worker that it replaces. The
sum over the others is smaller, which is no restart: what remains was counted long ago. Worked, two
versions with 1 000 000 and 500 000 requests: without the first, the second's 500 000 would be
taken for requests since the last page.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from headroom.telemetry.exposition import Layout, Page, Series

_MOST_KEPT = 1024
"""Series. A server with other series on each page is read as it is."""
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedPage:
    """A pod's page and, after its own series, those that earlier ones had."""

    layout: Layout
    """Of the page itself."""
    page: Page


def continued(before: ContinuedPage | None, page: Page, counters: Set[str]) -> ContinuedPage:
    """Return the page with the counters, by their names, of series that are no longer there.

    A series that falls shows that the process has restarted: then nothing before it counts.
    """
    alone = ContinuedPage(layout=page.layout, page=page)
    if before is None:
        return alone
    if page.layout is before.layout and before.page.layout is before.layout:
        return alone
    then, now = _values(before.page, counters), _values(page, counters)
    gone = {key: one for key, one in then.items() if key not in now}
    restarted = any(now[key][1] < value for key, (_, value) in then.items() if key in now)
    if not gone or restarted or len(gone) > _MOST_KEPT:
        return alone
    layout = before.page.layout
    if page.layout is not before.layout:
        series = tuple(series for series, _ in gone.values())
        layout = Layout((*page.layout.series, *series), page.layout.lines)
    values = (*page.values, *(value for _, value in gone.values()))
    return ContinuedPage(layout=page.layout, page=Page(layout, values))


def _values(page: Page, counters: Set[str]) -> dict[_Key, tuple[Series, float]]:
    return {
        (series.name, tuple(sorted(series.labels.items()))): (series, value)
        for series, value in zip(page.layout.series, page.values, strict=True)
        if series.name in counters
    }

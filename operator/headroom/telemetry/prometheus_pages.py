"""A Prometheus response → the latest page of each pod, as it was scraped. Pure.

All samples of one scrape have its timestamp, so the samples of one timestamp are one consistent
page; a series that the pod no longer exposes has no sample at that time. Two Prometheus replicas or
two jobs may scrape the same pod: each is an origin, and the latest page of any origin counts.
Origins are never mixed, since series that differ only in the origin would be added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pages.exposition import Layout, Page, Series
from headroom.telemetry.pages.recent_layouts import Recent

POD_LABEL, NAMESPACE_LABEL = "pod", "namespace"
SCRAPE_LABELS = frozenset({"job", "instance"})
"""Prometheus sets these two on every series. Others, such as endpoint and container, may be the
server's own labels."""
REPLICA_LABELS = frozenset({"prometheus", "prometheus_replica", "__replica__"})
_REMEMBERED = 65_536, 1 << 23
"""Series, and bytes of their texts: a pod may have other labels of 100 kB on each page."""
_NUMBER = re.compile(r"[+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf|NaN)")


class MalformedResponse(TelemetryError):  # noqa: N818  (named by what the caller does next)
    """The response is not one of Prometheus' query API."""


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """A page and its scrape time by Prometheus' clock."""

    page: Page
    time_s: float


_Labels = tuple[tuple[str, str], ...]
_Key = tuple[tuple[str, _Labels], ...]


class PageReader:
    """Builds pages from the samples of a range selector; its caches affect only speed."""

    def __init__(self, replica_labels: Iterable[str] = ()) -> None:
        """`replica_labels` are additional labels that name the Prometheus replica."""
        self._origin = SCRAPE_LABELS | REPLICA_LABELS | set(replica_labels)
        self._dropped = self._origin | {POD_LABEL, NAMESPACE_LABEL, "__name__"}
        self._layouts: Recent[_Key, Layout] = Recent(*_REMEMBERED)

    def read(self, result: object) -> dict[str, ScrapedPage]:
        """Return the latest page of each pod in the result.

        `result` is the API's list for a range selector: series with `metric`, a map of labels, and
        `values`, pairs of a time in seconds and a number as text.

        Raises MalformedResponse.
        """
        if not isinstance(result, list):
            raise MalformedResponse(f"result must be a list of series; got {result!r:.80}")
        samples: dict[tuple[str, _Labels], dict[float, list[tuple[str, _Labels, str]]]] = {}
        for one in result:
            labels, points = _series(one)
            if not points:
                continue
            origin = tuple(sorted((k, v) for k, v in labels.items() if k in self._origin))
            own = tuple(sorted((k, v) for k, v in labels.items() if k not in self._dropped))
            name = labels.get("__name__", "")
            times = samples.setdefault((labels.get(POD_LABEL, ""), origin), {})
            # Only the latest page is needed: older samples of a series cannot be part of it.
            time_s, value = points[-1]
            times.setdefault(time_s, []).append((name, own, value))
        newest: dict[str, tuple[float, list[tuple[str, _Labels, str]]]] = {}
        for (pod, _), times in samples.items():
            time_s = max(times)
            if pod not in newest or time_s > newest[pod][0]:
                newest[pod] = time_s, times[time_s]
        return {
            pod: ScrapedPage(self._page(rows), time_s) for pod, (time_s, rows) in newest.items()
        }

    def _page(self, rows: list[tuple[str, _Labels, str]]) -> Page:
        rows.sort()
        key = tuple((name, labels) for name, labels, _ in rows)
        layout = self._layouts.get(key)
        if layout is None:
            series = tuple(Series(name, dict(labels)) for name, labels in key)
            layout = Layout(series, len(key))
            texts = sum(len(text) for _, labels in key for pair in labels for text in pair)
            self._layouts.add(key, layout, len(key), texts)
        return Page(layout, tuple(_number(text) for _, _, text in rows))


def _series(one: Any) -> tuple[Mapping[str, str], list[tuple[float, str]]]:
    """Return labels and points of one series; a native histogram has no points."""
    try:
        labels, values = one["metric"], one.get("values", [])
        if not all(isinstance(text, str) for pair in labels.items() for text in pair):
            raise TypeError(labels)
        points = []
        for time_s, value in values[-1:]:
            if isinstance(time_s, bool) or not isinstance(time_s, int | float):
                raise TypeError(time_s)
            if not isinstance(value, str):
                raise TypeError(value)
            points.append((float(time_s), value))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        rule = "a series must have a map of labels and pairs of time and number"
        raise MalformedResponse(f"{rule}; got {one!r:.120}") from error
    return labels, points


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise MalformedResponse(f"a value must be a number, NaN or Inf; got {text!r:.80}")
    try:
        return float(text)
    except ValueError as error:
        raise MalformedResponse(f"a value must be a number; got {text!r:.80}") from error

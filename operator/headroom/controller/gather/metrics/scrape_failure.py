"""A ready pod without a recent sample, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headroom.api.timestamps import rfc3339
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.telemetry.prometheus_pages import ScrapedPage

NOT_SCRAPED = (
    "Prometheus has no recent sample with this namespace and pod as labels: see whether the pod is "
    "a target there that is up, and whether telemetry.staleAfter is above the scrape interval"
)
OLD = (
    "the latest sample that Prometheus returns is from %s, older than telemetry.staleAfter: a "
    "cache or proxy in front of it repeats old answers, or its clock is behind"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeFailure:
    """A ready pod without a recent sample, and why."""

    pod: str
    why: str


def old_pages(
    pods: Sequence[ObservedPod], pages: Mapping[str, ScrapedPage], oldest_s: float
) -> Iterator[ScrapeFailure]:
    """Yield the pods whose page is older than `staleAfter`; the decision knows its age."""
    for one in pods:
        page = pages.get(one.name)
        if page is not None and one.pod.created_s <= page.time_s < oldest_s:
            yield ScrapeFailure(pod=one.name, why=OLD % rfc3339(page.time_s))

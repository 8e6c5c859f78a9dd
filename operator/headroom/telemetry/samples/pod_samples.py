"""Pages of a service's pods → samples; keeps the last page of each pod."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from headroom.profiles.values import Profile
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import EngineLimits
from headroom.telemetry.bounds.stated_limits import NOTHING_STATED
from headroom.telemetry.errors import RepeatedPage
from headroom.telemetry.pages.exposition import Page
from headroom.telemetry.pages.profile_reader import ProfileReader
from headroom.telemetry.pages.reading import Reading
from headroom.telemetry.pages.recent_layouts import LayoutMemory
from headroom.telemetry.samples.accounts import Account, Batch, common_bounds_s
from headroom.telemetry.samples.baseline import Baseline, baseline_of, since
from headroom.telemetry.samples.derived_gauges import LEAST_SPAN_S, derives_gauges
from headroom.telemetry.samples.sampling import sample_of

_REPLICAS_APART_S = 60.0
"""Between pages of two replicas of Prometheus, which scrape as often."""


class PodSamples:
    """The samples of one service's pods."""

    def __init__(self, profile: Profile, model: str | None, batch: Batch | None = None) -> None:
        """Read metrics of `model`; None reads the only model on the page.

        `batch` is None if the server exposes its maximum batch size.
        """
        self.profile = profile
        self.model = model
        self.batch = batch
        self._reader = reader_of(profile)
        self._accounts: dict[str, Account] = {}
        self._samples: dict[str, PodSample | None] = {}
        self._baselines: dict[str, Baseline] = {}
        """Baselines of pods that the operator warmed up."""
        self._from_future: dict[str, tuple[float, float]] = {}
        """The latest page that was, of each pod: its own time, and when it was first seen."""

    def take(
        self,
        page: str | Page,
        *,
        pod: str,
        time_s: float,
        stated: EngineLimits = NOTHING_STATED,
    ) -> PodSample | None:
        """Return the sample of one pod (its UID) at `time_s`; None if it needs a second page.

        `stated` are the limits of its engine that the page may lack.
        A page that is not newer than the pod's last one changes nothing. One that follows it too
        soon to derive gauges from both is left to the next: its counters lose nothing.

        Raises MalformedExposition, MissingMetric or InvalidMetric, and RepeatedPage if the server's
        own count of its pages has not increased.
        """
        before = self._accounts.get(pod)
        if before is not None and time_s <= before.time_s:
            return self._samples[pod]
        last = None if before is None else before.reading
        reading = (
            self._reader.read_text(page, self.model, last)
            if isinstance(page, str)
            else self._reader.read(page, self.model, last)
        )
        known = None if last is None else last.pages
        if known is not None and reading.pages == known:
            raise RepeatedPage(self.profile.pages[0].name, known)
        if before is not None and derives_gauges(reading) and time_s < before.time_s + LEAST_SPAN_S:
            return self._samples[pod]
        sample, self._accounts[pod] = self._sample(reading, before, pod, time_s, stated)
        self._samples[pod] = self._counted(sample)
        return self._samples[pod]

    def local_s(self, pod: str, scraped_s: float, now_s: float) -> float:
        """Return when a page was scraped that another clock dates, for `take`.

        A page from the future counts from when it was first seen, however often it is seen again:
        else it would be a new one at each tick. Pages of other replicas of its Prometheus come in
        any order, and are older by as much as their own times differ; more is a clock that was set.
        """
        ahead_s, seen_s = self._from_future.get(pod, (-math.inf, 0.0))
        if 0.0 <= ahead_s - scraped_s < _REPLICAS_APART_S:
            return seen_s - (ahead_s - scraped_s)
        if scraped_s <= now_s:
            return scraped_s
        self._from_future[pod] = scraped_s, now_s
        return now_s

    def begin(self, page: str, *, pod: str, time_s: float) -> None:
        """Set the baseline of a pod from the page before its first traffic.

        Raises MalformedExposition, MissingMetric or InvalidMetric; then there is no baseline.
        """
        self._baselines.pop(pod, None)
        reading = self._reader.read_text(page, self.model)
        _, account = self._sample(reading, None, pod, time_s)
        self._baselines[pod] = baseline_of(reading, account)

    def _sample(
        self,
        reading: Reading,
        before: Account | None,
        pod: str,
        time_s: float,
        stated: EngineLimits = NOTHING_STATED,
    ) -> tuple[PodSample | None, Account]:
        return sample_of(
            self.profile,
            reading,
            before,
            pod=pod,
            time_s=time_s,
            batch=self.batch,
            bounds_s=common_bounds_s(self._accounts) if reading.latency is None else (),
            stated=stated,
        )

    def _counted(self, sample: PodSample | None) -> PodSample | None:
        """Subtract the baseline, unless the process has restarted since."""
        baseline = None if sample is None else self._baselines.get(sample.pod)
        if sample is None or baseline is None:
            return sample
        later = since(baseline, sample)
        if later is None:
            del self._baselines[sample.pod]
        return later or sample

    def copy(self) -> PodSamples:
        """Return the same memory of pages; what either reads later, the other does not know."""
        other = PodSamples(self.profile, self.model, self.batch)
        other._accounts = dict(self._accounts)
        other._samples = dict(self._samples)
        other._baselines = dict(self._baselines)
        other._from_future = dict(self._from_future)
        return other

    @property
    def readings(self) -> dict[str, Reading]:
        """The latest reading of each pod by UID."""
        return {pod: account.reading for pod, account in self._accounts.items()}

    def keep(self, pods: Iterable[str]) -> None:
        """Discard all pods except these."""
        kept = set(pods)
        for pod in [pod for pod in self._accounts if pod not in kept]:
            del self._accounts[pod], self._samples[pod]
        self._from_future = {pod: one for pod, one in self._from_future.items() if pod in kept}

    def exist(self, pods: Iterable[str]) -> None:
        """Discard the baselines of all pods except these."""
        there = set(pods)
        self._baselines = {pod: one for pod, one in self._baselines.items() if pod in there}


@lru_cache(maxsize=64)
def reader_of(profile: Profile) -> ProfileReader:
    """Return the reader of a profile; services with the same profile share its caches."""
    return ProfileReader(profile, _MEMORY)


_MEMORY = LayoutMemory()
"""Layouts of all services."""

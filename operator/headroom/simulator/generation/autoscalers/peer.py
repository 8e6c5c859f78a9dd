"""The base of the peers that scale generating services: its knobs, its name, what it scraped.

A peer sees pages of pods (`View.samples`), as its Prometheus or its gateway would. `History` keeps
them for the windows of its rule.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample, PodState
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tokens import GenerationSample, TokenTargets
from headroom.scaling.windows.histogram import percentile
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.run import Truth

Knob = float | str


@dataclass(kw_only=True)
class History:
    """The pages of the last seconds, by pod."""

    horizon_s: float = 400.0
    _pages: deque[tuple[float, dict[str, PodSample]]] = field(default_factory=deque)

    def add(self, view: View) -> None:
        """Keep the pages of this view."""
        self._pages.append((view.now_s, {page.pod: page for page in view.samples}))
        while self._pages[0][0] < view.now_s - self.horizon_s:
            self._pages.popleft()

    def increase(self, read: Callable[[PodSample], float], window_s: float) -> float:
        """Return the increase of a counter over all pods in the window, new pods from 0."""
        last, first = self._ends(window_s)
        return sum(
            read(page) - (read(first[uid]) if uid in first else 0.0) for uid, page in last.items()
        )

    def rate(self, read: Callable[[PodSample], float], window_s: float) -> float:
        """Return the increase per second."""
        span_s = min(window_s, self._pages[-1][0] - self._pages[0][0]) or window_s
        return self.increase(read, window_s) / span_s

    def mean(self, read: Callable[[PodSample], float], window_s: float) -> float:
        """Return the mean over the window of the sum of a gauge over the pods."""
        since_s = self._pages[-1][0] - window_s
        totals = [
            sum(read(page) for page in pages.values()) for at, pages in self._pages if at > since_s
        ]
        return sum(totals) / len(totals) if totals else 0.0

    def quantile(
        self,
        read: Callable[[GenerationSample], LatencyCounts | None],
        ratio: float,
        window_s: float,
    ) -> float | None:
        """Return a percentile of a histogram's increase over all pods; None without any."""
        last, first = self._ends(window_s)
        bounds_s: tuple[float, ...] = ()
        total = np.zeros(0)
        for uid, page in last.items():
            found = read(generation(page))
            if found is None:
                continue
            counts = np.array(found.counts)
            before = read(generation(first[uid])) if uid in first else None
            if before is not None:
                counts = counts - np.array(before.counts)
            bounds_s = found.bounds_s
            total = counts if not len(total) else total + counts
        if not len(total) or total[-1] <= 0:
            return None
        value = percentile(bounds_s, total, 0.0, ratio)
        return bounds_s[-2] if value is not None and math.isinf(value) else value

    def _ends(self, window_s: float) -> tuple[dict[str, PodSample], dict[str, PodSample]]:
        now_s, last = self._pages[-1]
        first: dict[str, PodSample] = {}
        for at, pages in self._pages:
            if at > now_s - window_s - 1e-9:
                break
            first = pages
        return last, first


def generation(page: PodSample) -> GenerationSample:
    """Return what a page says about generation."""
    assert page.generation is not None
    return page.generation


@dataclass(kw_only=True)
class TokenPeer(ABC):
    """An autoscaler of one generating service; subclasses add knobs and `evaluate`."""

    kind: ClassVar[str]

    truth: Truth
    period_s: float = 15.0
    scrape_s: float = math.inf
    history: History = field(default_factory=History, init=False, repr=False)

    @classmethod
    def knobs(cls) -> Mapping[str, Knob]:
        """Return every knob with its default."""
        return {
            one.name: one.default
            for one in fields(cls)
            if one.init and isinstance(one.default, (bool, int, float, str))
        }

    @property
    def name(self) -> str:
        """The kind, and the knobs that are not at their default."""
        changed = [
            f"{knob}={getattr(self, knob)}"
            for knob, default in self.knobs().items()
            if getattr(self, knob) != default
        ]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @property
    def targets(self) -> TokenTargets:
        """The promises."""
        return self.truth.service.targets

    @property
    def policy(self) -> Policy:
        """The bounds, as the HPA controller reads them."""
        service = self.truth.service
        return Policy(
            latency_target_s=service.targets.whole_answer_s,
            min_replicas=service.min_replicas,
            max_replicas=service.max_replicas,
            token_targets=service.targets,
        )

    @abstractmethod
    def evaluate(self, view: View) -> ScaleRequest:
        """Return the requested replicas."""


def first_s(targets: TokenTargets) -> float:
    """Return the promised time to first token; inf without one."""
    return targets.first_token.seconds if targets.first_token is not None else math.inf


def output_s(targets: TokenTargets) -> float:
    """Return the promised time per output token; inf without one."""
    return targets.output_token.seconds if targets.output_token is not None else math.inf


def existing(view: View) -> int:
    """Count the pods that do not terminate."""
    return sum(pod.state is not PodState.TERMINATING for pod in view.pods)


def ready(view: View) -> int:
    """Count the pods that take requests."""
    return sum(pod.state is PodState.READY for pod in view.pods)


def used_share(page: PodSample) -> float:
    """Return the share of KV memory in use."""
    return generation(page).kv_used_share or 0.0

"""Learns the cost of a live replica's iterations from its metrics, as the operator does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headroom.adapters.pods.metrics_page import metrics_page, page_url
from headroom.errors import Unmeasurable
from headroom.planner.errors import require
from headroom.profiles import PROFILES
from headroom.profiles.generation import GenerationMetrics
from headroom.scaling.generation.learning.identification import identify
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.replica_model.rates import Rates
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import EngineLimits, IterationCost
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

EVERY_S = 2.0
SHORTEST_S, LONGEST_S = 20.0, 3600.0
READY_SINCE_S = -3600.0
"""The replica is warm: nothing that it did is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEngine:
    """Learned cost and limits of one replica."""

    cost: IterationCost
    limits: EngineLimits
    """Limits that the server states."""
    source: str
    unknown: tuple[str, ...]
    seen_rps: float
    """Requests that arrived per second."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, and waiting for it."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def measured_engine(
    url: str,
    *,
    profile: str,
    model: str | None,
    seconds: float,
    sequences: int,
    read: Callable[[str], str] = metrics_page,
    clock: Clock = Clock(),
) -> MeasuredEngine:
    """Watch one replica under its own load. Raises Unmeasurable, ImpossiblePlan.

    `sequences` are those that run at once at most, where the server does not state them.
    """
    require(
        SHORTEST_S <= seconds <= LONGEST_S,
        f"--watch must be between {SHORTEST_S:g}s and 1h",
        f"{seconds:g} s",
        "Give 1m",
    )
    known = sorted(name for name, one in PROFILES.items() if _shows_cost(one.generation))
    require(
        profile in known,
        f"--profile must be one of {', '.join(known)}, whose metrics show what an iteration costs",
        profile,
        "For another server give the cost: --iteration-ms, --prompt-token-ms",
    )
    server = PROFILES[profile]
    samples = PodSamples(server, model, None if server.max_batch else Batch(largest=sequences))
    address, state = page_url(url, server.metrics_path), GenerationState()
    began_s = before_s = clock.now_s()
    first = latest = None
    while (now_s := clock.now_s()) - began_s <= seconds:
        try:
            sample = samples.take(read(address), pod=url, time_s=now_s)
        except TelemetryError as error:
            raise Unmeasurable(f"{address}: {error}. Set --profile to the server") from error
        if sample is not None:
            ready = {url: began_s + READY_SINCE_S}
            state = state.observe((sample,), ready, now_s, now_s - before_s, None)
            first, latest = first or sample, sample
            state = _loaded(state, _arrival_rps(first, latest))
        before_s = now_s
        clock.sleep(EVERY_S)
    if first is not None and latest is not None and latest.arrivals <= first.arrivals:
        raise Unmeasurable(
            f"no request came to {url} while it was watched, so nothing shows what one costs. Send "
            "requests of different lengths meanwhile"
        )
    found = _result(state, url, _arrival_rps(first, latest))
    if server.max_batch:
        return found
    return replace(found, limits=replace(found.limits, sequences=None))


def _shows_cost(metrics: GenerationMetrics | None) -> bool:
    """Return whether the cost of an iteration can be learned, however long a server is watched."""
    return metrics is not None and all(
        (
            metrics.iterations,
            metrics.computed_prompt_tokens,
            metrics.prompt_lengths,
            metrics.output_lengths,
        )
    )


def _arrival_rps(first: PodSample | None, latest: PodSample | None) -> float:
    """Return the mean rate; 0 while too little was watched to tell it."""
    elapsed_s = 0.0 if first is None or latest is None else latest.time_s - first.time_s
    if first is None or latest is None or elapsed_s < SHORTEST_S / 2:
        return 0.0
    return (latest.arrivals - first.arrivals) / elapsed_s


def _loaded(state: GenerationState, arrival_rps: float) -> GenerationState:
    """Return the state after the load that was seen: arrivals over what the replica takes at most.

    The share of time with an iteration in progress is no load: one sequence keeps an engine busy.
    """
    inputs = state.inputs
    if inputs is None:
        return state
    rates = Rates(work=work_of(inputs.cost, inputs.shape), limits=inputs.limits)
    seen = state.seen_load.observe(arrival_rps / rates.most_rps, 0.0)
    return replace(state, seen_load=seen)


def _result(state: GenerationState, url: str, seen_rps: float) -> MeasuredEngine:
    found = identify(state, None)
    if state.inputs is None:
        raise Unmeasurable(
            f"{url} does not show what an iteration costs: {'; '.join(found.missing)}. Send "
            "requests of different lengths meanwhile, or watch for longer with --watch"
        )
    return MeasuredEngine(
        cost=state.inputs.cost,
        limits=state.inputs.limits,
        source=found.source,
        unknown=found.missing,
        seen_rps=seen_rps,
    )

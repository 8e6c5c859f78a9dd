"""Learned state and decision of a generating service, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.values.tokens import (
    Binding,
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """Known and unknown parts of an engine's cost, for people."""

    known: bool
    """Whether a capacity follows from what was measured or stated."""
    source: str = ""
    """Source of the cost, such as "engine seconds per iteration"."""
    missing: tuple[str, ...] = ()
    """Values that the server does not report or the load has not shown; none is guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMeasurement:
    """One promise: its measured and expected latency, and the latency of an idle replica."""

    target: Target
    measured_s: float | None
    """The percentile over the last minute; None where no request was counted."""
    late_share: float | None
    """Share of the last minute's requests above the target."""
    expected_s: float | None
    """At the present rate and ready replicas; inf if these are too few."""
    floor_s: float | None
    """At an idle replica: no number of replicas keeps a lower target."""

    @property
    def feasible(self) -> bool:
        """Whether an idle replica keeps the target."""
        return self.floor_s is None or self.floor_s <= self.target.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMeasurement:
    """Generated tokens of all replicas, for people; None where their servers do not report them."""

    generated_tokens_per_s: float | None = None
    prompt_tokens_per_s: float | None = None
    """Computed ones, without those found in a cache."""
    kv_used_share: float | None = None
    """Largest used share of a replica."""


@dataclass(frozen=True, kw_only=True)
class GenerationDecision:
    """Basis of a decision about a generating service."""

    identification: Identification
    binding: Binding | None = None
    """The bound of the rate per replica now; None while no capacity is known."""
    capacity_rps: float | None = None
    """The rate that each of the decided replicas carries within all bounds."""
    bounds_rps: tuple[tuple[Binding, float], ...] = ()
    """The rate within each bound alone."""
    most_in_flight: int | None = None
    """Requests in flight at one replica that are answered in time: gateways reject more."""
    cost: IterationCost | None = None
    shape: RequestShape | None = None
    limits: EngineLimits = field(default_factory=EngineLimits)
    engine_share: float | None = None
    """Present share of the engine's time: arrivals times the work of a request."""
    memory_share: float | None = None
    """Present share of the KV tokens at the 95th percentile, by the model."""
    first_token: TokenMeasurement | None = None
    output_token: TokenMeasurement | None = None
    latency: TokenMeasurement | None = None

    @property
    def infeasible(self) -> tuple[Binding, ...]:
        """Promises that no number of replicas keeps."""
        named = (
            (Binding.TIME_TO_FIRST_TOKEN, self.first_token),
            (Binding.TIME_PER_OUTPUT_TOKEN, self.output_token),
            (Binding.LATENCY, self.latency),
        )
        return tuple(name for name, one in named if one is not None and not one.feasible)

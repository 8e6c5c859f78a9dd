"""Inputs of the model of a replica, and the test whether they changed enough to build it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.generation.replica_model.rates import Rates
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import EngineLimits, IterationCost, RequestShape

MOVED = 0.01
FACTORS_MOVED = 0.03


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """Inputs of the model of a replica; compared as an object, a key of caches."""

    cost: IterationCost
    shape: RequestShape
    limits: EngineLimits
    factors: TailFactors
    shared: float = 0.0
    """Share of the tokens found in caches that other running sequences hold as well."""

    @property
    def rates(self) -> Rates:
        """Highest rates of a replica."""
        return Rates(work=work_of(self.cost, self.shape, self.shared), limits=self.limits)

    def near(self, other: Inputs) -> bool:
        """Return whether the difference is within MOVED."""
        if self.limits != other.limits:
            return False
        here = work_of(self.cost, self.shape, self.shared)
        there = work_of(other.cost, other.shape, other.shared)
        pairs = (
            (here.request_s, there.request_s),
            (here.context_tokens, there.context_tokens),
            (here.memory_tokens, there.memory_tokens),
            (here.prompt_s + here.fixed_s, there.prompt_s + there.fixed_s),
            (here.steps, there.steps),
            (self.cost.fixed_s, other.cost.fixed_s),
        )
        factors = (
            (self.factors.first_token, other.factors.first_token),
            (self.factors.output_token, other.factors.output_token),
        )
        return all(abs(one - two) <= MOVED * max(one, two) for one, two in pairs) and all(
            abs(one - two) <= FACTORS_MOVED * max(one, two) for one, two in factors
        )


def scaled(cost: IterationCost, factor: float) -> IterationCost:
    """Return the cost of an engine that takes this many times as long."""
    return replace(
        cost,
        fixed_s=factor * cost.fixed_s,
        prompt_token_s=factor * cost.prompt_token_s,
        sequence_s=factor * cost.sequence_s,
        context_token_s=factor * cost.context_token_s,
        prompt_product_s=factor * cost.prompt_product_s,
        experts_s=factor * cost.experts_s,
    )


def smallest_limits(samples: Iterable[PodSample]) -> EngineLimits | None:
    """Return the smallest limits that any replica reports; None without a generating one."""
    every = [one.generation.limits for one in samples if one.generation is not None]
    if not every:
        return None
    different = {(one.kv_tokens, one.sequences, one.iteration_tokens) for one in every}
    if len(different) == 1:
        return every[0]
    tokens, sequences, chunks = zip(*different, strict=True)
    return EngineLimits(
        kv_tokens=min((one for one in tokens if one is not None), default=None),
        sequences=min((one for one in sequences if one is not None), default=None),
        iteration_tokens=min((one for one in chunks if one is not None), default=None),
    )

"""decide() in a loop with a plant of generating replicas, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headroom.scaling import Decision, Observation, Policy, State, decide
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import (
    EngineLimits,
    IterationCost,
    Target,
    TokenTargets,
)
from support.generating_plant import GeneratingPlant, Lengths

LIMITS = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)
TARGETS = TokenTargets(
    first_token=Target(percentile=0.95, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.06),
)

UNUSUAL = IterationCost(fixed_s=0.03, prompt_token_s=2e-5, sequence_s=0.003, context_token_s=0.0)
"""A tenth of an iteration per sequence, where a GPU needs a hundredth: the engine of the demo."""
UNTIMED = ("engine_seconds", "sequence_steps", "sequence_seconds", "iterations")


@dataclass
class Loop:
    """A plant that decide() scales."""

    plant: GeneratingPlant
    targets: TokenTargets | None = TARGETS
    latency_target_s: float = 60.0
    see: Callable[[Observation], Observation] = lambda observation: observation
    state: State = field(default_factory=State.initial)
    decisions: list[Decision] = field(default_factory=list)

    def run(self, until_s: float, *, act: bool = True) -> Decision:
        """Tick until then; return the last decision."""
        policy = Policy(
            latency_target_s=self.latency_target_s,
            token_targets=self.targets,
            routing=Routing.LEAST_IN_FLIGHT,
            max_replicas=40,
        )
        while self.plant.now_s < until_s:
            self.plant.run(2.0)
            decision, self.state = decide(policy, self.state, self.see(self.plant.observe()))
            self.decisions.append(decision)
            if act:
                self.plant.scale(decision.replicas)
        return self.decisions[-1]

    def late(self) -> float:
        """Share of first tokens after the promise."""
        engines = (*self.plant.engines, *self.plant.draining)
        values = [value for engine in engines for value in engine.first.values]
        assert self.targets is not None
        target = self.targets.first_token
        assert target is not None
        return sum(value > target.seconds for value in values) / len(values)


def loop(
    cost: IterationCost,
    lengths: Lengths,
    rate_rps: Callable[[float], float],
    replicas: int,
    *,
    sums: bool = False,
    targets: TokenTargets = TARGETS,
) -> Loop:
    plant = GeneratingPlant(cost=cost, limits=LIMITS, lengths=lengths, rate_rps=rate_rps, sums=sums)
    plant.scale(replicas, at_once=True)
    return Loop(plant, targets)


def true_capacity(found: Loop, cost: IterationCost) -> float:
    """The capacity with the cost of the plant in place of the learned one, all else equal."""
    inputs = found.state.generation.inputs
    assert inputs is not None
    assert found.targets is not None
    true = replace(inputs, cost=cost)
    fleet = fleet_of(true, found.targets, Routing.LEAST_IN_FLIGHT, 60.0)
    return fleet.capacity_rps(60.0, len(found.plant.engines))


def promised(percentile: float) -> TokenTargets:
    """Return both promises at one percentile."""
    return TokenTargets(
        first_token=Target(percentile=percentile, seconds=2.0),
        output_token=Target(percentile=percentile, seconds=0.06),
    )


def with_batches(observation: Observation) -> Observation:
    """Return the view with each ended request as a batch of 4 s, as Little's law gives alone."""

    def seen(one: PodSample) -> PodSample:
        ended = one.latency.counts[-1]
        return replace(one, batches=ended, batch_items=ended, batch_seconds=4 * ended, max_batch=64)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def embedding(observation: Observation) -> Observation:
    """Return the view of a server that counts iterations and prompts, and generates nothing."""

    def seen(one: PodSample) -> PodSample:
        page = one.generation
        assert page is not None
        page = replace(page, generated_tokens=0.0, sequence_steps=0.0, output_lengths=None)
        return replace(one, generation=page)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def standing(observation: Observation) -> Observation:
    """Return the view of servers whose counters of iterations do not count."""

    def seen(one: PodSample) -> PodSample:
        page = one.generation
        if page is None:
            return one
        page = replace(page, iterations=0.0, engine_seconds=0.0, sequence_seconds=0.0)
        return replace(one, generation=page)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def without(*fields: str) -> Callable[[Observation], Observation]:
    """Return the view of a server that does not report these."""

    def seen(observation: Observation) -> Observation:
        samples = tuple(
            replace(one, generation=replace(one.generation, **dict.fromkeys(fields)))  # type: ignore[arg-type]
            if one.generation is not None
            else one
            for one in observation.samples
        )
        return replace(observation, samples=samples)

    return seen

"""What is learned about a generating service: cost, lengths, tails; immutable, one per tick.

What the model is built from changes only when it has moved by more than a percent, so that the
decision does not tremble and capacities are not computed again at each tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.scaling.checkpoint_numbers import LARGEST_NUMBER
from headroom.scaling.frozen import replace
from headroom.scaling.generation import intervals
from headroom.scaling.generation.estimate import Ratios
from headroom.scaling.generation.experts import SHARES
from headroom.scaling.generation.ledger import LEAST_ITERATIONS, Ledger
from headroom.scaling.generation.lengths import WIDTH, Lengths
from headroom.scaling.generation.promises import Measured, PromiseWindow, nearest_s
from headroom.scaling.generation.rates import Rates
from headroom.scaling.generation.replica import GeneratingReplica, TailFactors
from headroom.scaling.generation.shared_memory import SharedMemory
from headroom.scaling.generation.sums import ITERATIONS, SUMS, total
from headroom.scaling.generation.token_counters import Increase, TokenCounters
from headroom.scaling.generation.token_table import Count
from headroom.scaling.generation.work import work_of
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.token_decision import Identification
from headroom.scaling.values.tokens import Binding, EngineLimits, IterationCost, RequestShape

SEEN_LOAD = 0.35
"""Share of what a replica takes at most that must have been seen: what is learned below is
optimistic."""
DOUBLED = 2.0
DOUBT = 1.05
"""Factor on the cost until then: the estimate is 2 to 7 % too low."""
MOVED = 0.01
FACTORS_MOVED = 0.03
FIT_S = 4.0
"""Between two comparisons of the inputs with what is known of cost and lengths."""
TEACH_S = 10.0
"""Between two estimates of the cost, which what happens within seconds does not change."""
FACTOR_S = 300.0
FULL_WEIGHT_REQUESTS = 200.0
AWAITED_S = 180.0
"""From the first token: the cost of an iteration is known by then, or its counters are no use.
Worked: a replica counts as cold for 30 s, then 200 iterations of 100 ms take 20 s."""
SMALLEST, LARGEST = 0.6, 4.0
LEAST_FIT_ITERATIONS = 200.0
"""Fewer iterations are no cost, unless one is stated."""
MOST_EXPECTED = 20.0
"""Late requests that may come at once: beyond, it is no chance."""
VARIED = 1.15
"""Slowest over fastest mean iteration that tells the parts of the cost apart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """What the model of a replica is built from; compared as an object, a key of caches."""

    cost: IterationCost
    shape: RequestShape
    limits: EngineLimits
    factors: TailFactors
    shared: float = 0.0
    """Of the tokens found in caches, the share that other running sequences hold as well."""

    @property
    def rates(self) -> Rates:
        """What a replica serves at most."""
        return Rates(work=work_of(self.cost, self.shape, self.shared), limits=self.limits)

    def near(self, other: Inputs) -> bool:
        """Whether the difference is within MOVED."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationState:
    """Everything that the next decision about a generating service needs."""

    counters: TokenCounters = field(default_factory=TokenCounters)
    window: PromiseWindow = field(default_factory=PromiseWindow)
    ledger: Ledger = field(default_factory=Ledger)
    lengths: Lengths = field(default_factory=Lengths)
    shared: SharedMemory = field(default_factory=SharedMemory)
    factors: TailFactors = field(default_factory=TailFactors)
    highest_load: float = 0.0
    highest_in_flight: float = 0.0
    """Most requests in flight per replica that were seen."""
    limits: EngineLimits = field(default_factory=EngineLimits)
    inputs: Inputs | None = None
    fitted_s: float | None = None
    """When the inputs were last compared with what is known."""
    cost: IterationCost | None = None
    """What the ledger says; a stated cost before the first iteration."""
    untaught: tuple[tuple[float, Increase], ...] = ()
    """(time, increase) of the ticks that the ledger has not taken in yet."""
    taught_s: float | None = None
    """When it last did."""
    generating_since_s: float | None = None
    """When the first tokens were seen."""
    source: str = ""
    late_alone: float = 0.0
    """First tokens that are expected late whatever the replicas, and were not yet."""

    def observe(
        self,
        samples: Sequence[PodSample],
        ready_since_s: Mapping[str, float],
        now_s: float,
        elapsed_s: float,
        prior: IterationCost | None,
    ) -> GenerationState:
        """Take in the newest pages; `ready_since_s` has the replicas that take requests."""
        counters, increase = self.counters.advance(samples)
        lengths = self.lengths.observe(increase, counters.grid, elapsed_s)
        window = self.window.observe(increase, counters.grid, now_s)
        untaught = (*self.untaught, (now_s, increase)) if increase.pods else self.untaught
        due = self.fitted_s is None or now_s - self.fitted_s >= FIT_S
        since_s = self.generating_since_s
        if since_s is None and bool((increase.added[:, Count.GENERATED] > 0.0).any()):
            since_s = now_s
        state = replace(
            self,
            generating_since_s=since_s,
            counters=counters,
            lengths=lengths,
            window=window,
            limits=_limits(samples) or self.limits,
            untaught=untaught if lengths.known else (),
            fitted_s=now_s if due else self.fitted_s,
        )
        if not due:
            return state
        if lengths.shape is not None:
            since_s = 0.0 if self.fitted_s is None else now_s - self.fitted_s
            shared = self.shared.observe(samples, lengths.shape, since_s)
            state = replace(state, shared=shared)
        taught_s = now_s if self.taught_s is None else self.taught_s
        if self.inputs is None or now_s - taught_s >= TEACH_S:
            state = state._taught(ready_since_s, now_s, prior)
        return state._with_inputs(prior)

    def awaits_cost(self, samples: Sequence[PodSample], now_s: float) -> bool:
        """Whether the cost of an iteration is unknown but will soon follow from these pages.

        Until then a request of some seconds among others says nothing of what a replica carries:
        read as a batch, it would need a replica of its own.
        """
        if self.inputs is not None:
            return False
        if self.generating_since_s is None or now_s - self.generating_since_s > AWAITED_S:
            return False
        pages = [one.generation for one in samples if one.generation is not None]
        return any(page.times_iterations for page in pages)

    def _taught(
        self, ready_since_s: Mapping[str, float], now_s: float, prior: IterationCost | None
    ) -> GenerationState:
        """Return the state that has learned the cost from all intervals since it last did."""
        ratios, expected = Ratios.of(prior), None if self.inputs is None else self.inputs.cost
        elapsed_s = 0.0 if self.taught_s is None else now_s - self.taught_s
        warm = [intervals.warm(one, ready_since_s, then_s) for then_s, one in self.untaught]
        ledger, source, shape = self.ledger, self.source, self.shape
        exact = [found for found in map(intervals.exact_sums, warm) if found is not None]
        if exact and shape is not None:
            source, chunk = intervals.EXACT_SUMS, intervals.chunk_tokens(shape)
            for inner, products in exact:
                spent_s = elapsed_s / len(exact)
                ledger = ledger.observe_sums(inner, products, ratios, spent_s, chunk)
        elif warm and shape is not None:
            found, source = intervals.intervals_of(intervals.joined(warm), shape)
            ledger = ledger.observe(found, ratios, elapsed_s, expected)
        cost, estimate = prior, ledger.fit(ratios, prior)
        if estimate is not None:
            cost, ledger = estimate.cost(ratios), replace(ledger, share=estimate.share)
        return replace(self, ledger=ledger, source=source, cost=cost, untaught=(), taught_s=now_s)

    @property
    def shape(self) -> RequestShape | None:
        """The lengths of requests, with what is known of prompts and their answers together."""
        lengths = self.lengths.shape
        return None if lengths is None else self.shared.paired(lengths)

    def seen(self, load: float, in_flight: float = 0.0) -> GenerationState:
        """Return the state after a replica got this share of the rate that it takes at most.

        `in_flight` are the requests in flight per replica then.
        """
        if min(1.0, load) <= self.highest_load and in_flight <= self.highest_in_flight:
            return self
        return replace(
            self,
            highest_load=max(min(1.0, load), self.highest_load),
            highest_in_flight=max(in_flight, self.highest_in_flight),
        )

    def least_replicas(self, in_flight: float) -> int:
        """Return the fewest replicas whose load is not far beyond what was seen.

        Until a replica had SEEN_LOAD, the cost of further sequences is that of usual engines. So
        each removal at most doubles what is in flight per replica, and the next one comes after
        the cost was learned there. Worked: 12 in flight, at most 1.5 per replica: 4 replicas.
        """
        if self.highest_load >= SEEN_LOAD:
            return 0
        return math.ceil(in_flight / (DOUBLED * max(1.0, self.highest_in_flight)) - _ROUNDING)

    def corrected(
        self,
        replica: GeneratingReplica,
        measured: Mapping[Binding, Measured],
        arrival_rps: float,
        replicas: int,
        elapsed_s: float,
    ) -> GenerationState:
        """Return the state with the tails compared with what was measured of them."""
        factors = self.factors
        grids = {
            Binding.TIME_TO_FIRST_TOKEN: (self.window.grid.first_token, factors.first_token),
            Binding.TIME_PER_OUTPUT_TOKEN: (self.window.grid.output_token, factors.output_token),
        }
        counts = self.window.counts()
        moved: dict[Binding, float] = {}
        for binding, (bounds_s, factor) in grids.items():
            one = measured.get(binding)
            if one is None or one.value_s is None or binding not in counts:
                continue
            expected_s = replica.percentile_s(
                binding, one.target.percentile, arrival_rps / replicas, replicas
            )
            if not 0.0 < expected_s < math.inf:
                continue
            found_s = nearest_s(bounds_s, counts[binding], one.target.percentile, expected_s)
            ratio = min(LARGEST, max(SMALLEST, found_s / expected_s * factor)) / factor
            weight = min(1.0, one.requests / FULL_WEIGHT_REQUESTS)
            gain = -math.expm1(-elapsed_s * weight / FACTOR_S)
            moved[binding] = factor * ratio**gain
        return replace(
            self,
            factors=TailFactors(
                first_token=moved.get(Binding.TIME_TO_FIRST_TOKEN, factors.first_token),
                output_token=moved.get(Binding.TIME_PER_OUTPUT_TOKEN, factors.output_token),
            ),
        )

    def without_late_alone(
        self, outcomes: Outcomes, share: float
    ) -> tuple[GenerationState, Outcomes]:
        """Return the outcomes without the share of requests whose own prompts make them late."""
        expected = min(MOST_EXPECTED, self.late_alone + share * outcomes.ended)
        taken = min(outcomes.late, expected)
        if taken <= 0.0 and expected == self.late_alone:
            return self, outcomes
        known = replace(self, late_alone=expected - taken)
        return known, Outcomes(ended=outcomes.ended, late=outcomes.late - taken)

    def identification(self, prior: IterationCost | None) -> Identification:
        """Return what is known, and what is not."""
        missing = []
        if self.lengths.shape is None:
            missing.append("lengths of prompts and answers: too few requests have ended")
        learned = self.ledger.iterations >= LEAST_FIT_ITERATIONS
        if not learned:
            missing.append(
                "time per iteration: the servers report neither engine seconds nor the time "
                "between tokens with iterations, or too few have passed"
            )
        elif self.ledger.spread < VARIED and self.source != intervals.EXACT_SUMS:
            missing.append("fixed and per-token cost apart: the load has hardly varied")
        if self.highest_load < SEEN_LOAD:
            missing.append(
                f"cost at load: at most {100 * self.highest_load:.0f}% of what a replica takes at "
                f"most was seen, so {100 * (DOUBT - 1):.0f}% are added"
            )
        if self.limits.kv_tokens is None:
            missing.append("KV memory: the servers do not report its size")
        source = self.source if learned else "a stated cost" if prior is not None else ""
        return Identification(
            known=self.inputs is not None,
            source=source,
            missing=tuple(missing),
            highest_load=self.highest_load,
        )

    def _with_inputs(self, prior: IterationCost | None) -> GenerationState:
        shape = self.shape
        if self.ledger.iterations < LEAST_FIT_ITERATIONS and prior is None:
            return self
        cost = self.cost
        if shape is None or cost is None or not cost.fixed_s + cost.sequence_s > 0.0:
            return self
        if self.highest_load < SEEN_LOAD:
            cost = scaled(cost, DOUBT)
        latest = Inputs(
            cost=cost,
            shape=shape,
            limits=self.limits,
            factors=self.factors,
            shared=self.shared.share(shape),
        )
        if self.inputs is not None and latest.near(self.inputs):
            return self
        return replace(self, inputs=latest)

    def to_checkpoint(self) -> list[float]:
        """Return what survives a restart as numbers; empty if nothing was learned.

        Sums that grow too large are scaled down together, which leaves what they mean as it is.
        """
        if not self.ledger.bins:
            return []
        sums = total(self.ledger.bins.values())
        sums = sums * min(1.0, _SAVED_AT_MOST / float(sums.max()))
        return [
            self.factors.first_token,
            self.factors.output_token,
            self.highest_load,
            self.ledger.iterations,
            self.ledger.share,
            *sums.tolist(),
            *self.lengths.slow,
        ]

    @classmethod
    def from_checkpoint(cls, numbers: Sequence[float]) -> GenerationState:
        """Return the state that `to_checkpoint` saved; of another length, one without history.

        Raise ValueError for numbers that cannot be.
        """
        if len(numbers) != _SAVED:  # empty, or of an older version: the rest is kept
            return cls()
        first, output, load, iterations, share = numbers[:_HEAD]
        if not (SMALLEST <= first <= LARGEST and SMALLEST <= output <= LARGEST and load <= 1.0):
            rule = f"factors in {SMALLEST:g}..{LARGEST:g} and a load <= 1"
            raise ValueError(f"checkpoint generation must hold {rule}; got {list(numbers[:3])}")
        if share not in (0.0, *(float(f"{one:.9g}") for one in SHARES)):
            rule = f"a share of experts out of {SHARES}"
            raise ValueError(f"checkpoint generation must hold {rule}; got {share}")
        sums, lengths = tuple(numbers[_HEAD : _HEAD + SUMS]), tuple(numbers[_HEAD + SUMS :])
        if (
            max(sums) > LARGEST_NUMBER
            or max(lengths) > LARGEST_NUMBER
            or sums[ITERATIONS] < LEAST_ITERATIONS
        ):
            raise ValueError(f"checkpoint generation must hold sums <= {LARGEST_NUMBER:g}")
        return cls(
            ledger=Ledger(
                bins={(0, 0): sums},
                iterations=iterations,
                share=share,
            ),
            lengths=Lengths(fast=(0.0,) * WIDTH, slow=lengths),
            factors=TailFactors(first_token=first, output_token=output),
            highest_load=load,
        )


_ROUNDING = 1e-9
_HEAD = 5
_SAVED = _HEAD + SUMS + WIDTH
_SAVED_AT_MOST = LARGEST_NUMBER / 10


def scaled(cost: IterationCost, factor: float) -> IterationCost:
    """Return the cost of an engine that takes so many times as long."""
    return replace(
        cost,
        fixed_s=factor * cost.fixed_s,
        prompt_token_s=factor * cost.prompt_token_s,
        sequence_s=factor * cost.sequence_s,
        context_token_s=factor * cost.context_token_s,
        prompt_product_s=factor * cost.prompt_product_s,
        experts_s=factor * cost.experts_s,
    )


def _limits(samples: Iterable[PodSample]) -> EngineLimits | None:
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

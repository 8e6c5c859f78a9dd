"""Learned state of a generating service: cost, lengths, tails; immutable, one per tick.

What the model is built from changes only when it has moved by more than a percent, so that the
decision does not tremble and capacities are not computed again at each tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.generation.counters.token_counters import TokenCounters
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import Count
from headroom.scaling.generation.learning.iteration_cost.doubt import LEAST
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.teaching import teach
from headroom.scaling.generation.learning.model_inputs import Inputs, scaled, smallest_limits
from headroom.scaling.generation.learning.request_lengths.lengths import Lengths
from headroom.scaling.generation.learning.request_lengths.running_answers import (
    most_unended_squared,
)
from headroom.scaling.generation.learning.seen_load import SeenLoad
from headroom.scaling.generation.learning.tail_correction import corrected
from headroom.scaling.generation.promises.token_promises import Measured, PromiseWindow
from headroom.scaling.generation.replica_model.replica import GeneratingReplica, TailFactors
from headroom.scaling.generation.replica_model.shared_memory import SharedMemory
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import Binding, EngineLimits, IterationCost, RequestShape

FIT_S = 4.0
"""Between two comparisons of the inputs with what is known of cost and lengths."""
TEACH_S = 10.0
"""Between two estimates of the cost, which what happens within seconds does not change."""
AWAITED_S = 180.0
"""From the first token: the cost of an iteration is known by then, or its counters are no use.
Worked: a replica counts as cold for 30 s, then 200 iterations of 100 ms take 20 s."""
LEAST_FIT_ITERATIONS = 200.0
"""Fewer iterations are no cost, unless one is stated."""
MOST_EXPECTED = 20.0
"""Most late requests expected at once; chance does not explain more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationState:
    """Everything that the next decision about a generating service needs."""

    counters: TokenCounters = field(default_factory=TokenCounters)
    window: PromiseWindow = field(default_factory=PromiseWindow)
    ledger: Ledger = field(default_factory=Ledger)
    lengths: Lengths = field(default_factory=Lengths)
    shared: SharedMemory = field(default_factory=SharedMemory)
    factors: TailFactors = field(default_factory=TailFactors)
    seen_load: SeenLoad = field(default_factory=SeenLoad)
    limits: EngineLimits = field(default_factory=EngineLimits)
    inputs: Inputs | None = None
    fitted_s: float | None = None
    """Time when the inputs were last compared with the learned values."""
    cost: IterationCost | None = None
    """Estimate of the ledger; a stated cost before the first iteration."""
    error: float = LEAST
    """Standard error of the time of a request at full load, as a share of it."""
    untaught: tuple[tuple[float, Increase], ...] = ()
    """(time, increase) of the ticks that the ledger has not taken in yet."""
    taught_s: float | None = None
    """Time when the ledger last took in increases."""
    generating_since_s: float | None = None
    """Time when the first generated tokens were seen."""
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
        *,
        sees_load: bool = False,
    ) -> GenerationState:
        """Take in the newest pages; `ready_since_s` has the replicas that take requests.

        Where routing sees the load, they get requests in turn.
        """
        counters, increase = self.counters.advance(samples)
        lengths = self.lengths.observe(increase, counters.grid, increase.covers_s(counters.rows))
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
            limits=smallest_limits(samples) or self.limits,
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
            level = float(max(1, len(ready_since_s))) if sees_load else 1.0
            state = state._taught(ready_since_s, now_s, prior, level)
        return state._with_inputs(prior)

    def awaits_cost(self, samples: Sequence[PodSample], now_s: float) -> bool:
        """Return whether the cost of an iteration is unknown but will soon follow from these pages.

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
        self,
        ready_since_s: Mapping[str, float],
        now_s: float,
        prior: IterationCost | None,
        level: float,
    ) -> GenerationState:
        """Return the state that has learned the cost from all intervals since it last did."""
        taught = teach(
            self.ledger,
            self.untaught,
            ready_since_s,
            shape=self.shape,
            elapsed_s=0.0 if self.taught_s is None else now_s - self.taught_s,
            expected=None if self.inputs is None else self.inputs.cost,
            prior=prior,
            level=level,
            enough=self.seen_load.is_enough,
        )
        return replace(
            self,
            ledger=taught.ledger,
            source=self.source if taught.source is None else taught.source,
            cost=taught.cost,
            error=taught.error,
            untaught=(),
            taught_s=now_s,
        )

    @property
    def shape(self) -> RequestShape | None:
        """The lengths of requests, corrected by those of running sequences."""
        lengths, cost = self.lengths.shape, self.cost
        if lengths is None:
            return None
        unended = 0.0
        if cost is not None:
            unended = most_unended_squared(
                self.lengths.unended_tokens, lengths.accepted_per_step, cost
            )
        return self.shared.paired(lengths, unended)

    def corrected(
        self,
        replica: GeneratingReplica,
        measured: Mapping[Binding, Measured],
        arrival_rps: float,
        replicas: int,
        elapsed_s: float,
    ) -> GenerationState:
        """Return the state with its predicted tails corrected by measured ones."""
        factors = corrected(
            self.factors, self.window, replica, measured, arrival_rps, replicas, elapsed_s
        )
        return replace(self, factors=factors)

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

    def _with_inputs(self, prior: IterationCost | None) -> GenerationState:
        shape = self.shape
        if self.ledger.iterations < LEAST_FIT_ITERATIONS and prior is None:
            return self
        cost = self.cost
        if shape is None or cost is None or not cost.fixed_s + cost.sequence_s > 0.0:
            return self
        if not self.seen_load.is_enough:
            cost = scaled(cost, 1.0 + self.error)
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

"""Everything that the decision remembers about one service; immutable, replaced at each tick.

Learned values (cost, correction, cold starts) survive a restart through a checkpoint in the
object's status, and so does what was learned in the last hour (`last_hour`). Windows do not: time
without metrics proves nothing, so a restart begins a new hold and no replica is removed until it
has passed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.scaling.cost import learner_checkpoint
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.demand.away import Carried
from headroom.scaling.demand.connections import Connections
from headroom.scaling.demand.hidden_demand import InFlightHistory
from headroom.scaling.demand.obstacles import Obstacles
from headroom.scaling.demand.open_stream import OpenStream
from headroom.scaling.demand.retries import Retries
from headroom.scaling.demand.shared_limit import NO_SHARED_LIMIT, SharedLimit
from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.frozen import replace
from headroom.scaling.generation.learning import learned_checkpoint
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.pools.passing import Passing
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.latency.correction import LARGEST, SMALLEST, Correction
from headroom.scaling.limits import cold_start
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.promise import promise_checkpoint
from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.failures import Failures
from headroom.scaling.promise.margin import Margin
from headroom.scaling.promise.reserve import Reserve
from headroom.scaling.promise.risk import Risk
from headroom.scaling.replacement.rebalancer import Rebalancer
from headroom.scaling.replacement.replacer import Replacer
from headroom.scaling.state.last_hour import LastHour
from headroom.scaling.state.routing_transition import RoutingTransition
from headroom.scaling.values.checkpoint_numbers import Checkpoint, numbers_of, short
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.plausibility.contradictions import Contradictions
from headroom.scaling.windows.plausibility.repeated_pages import RepeatedPages
from headroom.scaling.windows.sliding_windows import Windows

CHECKPOINT_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that the next decision needs in addition to its observation."""

    last_s: float | None = None
    """Time of the last decision; None before the first."""
    restored_s: float | None = None
    """Time of the last decision before the restart; None without one."""
    windows: Windows = field(default_factory=Windows)
    learner: CostLearner = field(default_factory=CostLearner)
    cost: CostModel | None = None
    """The cost fitted at the last decision; new executions are compared with it."""
    cold_starts: ColdStarts = field(default_factory=ColdStarts)
    desired_low: SlidingExtreme = field(default_factory=lambda: SlidingExtreme(keep="smallest"))
    """Over the scale-up window: an increase must have been desired throughout."""
    needed_high: SlidingExtreme = field(default_factory=lambda: SlidingExtreme(keep="largest"))
    """Over the scale-down window: a removal keeps the most replicas that were needed."""
    arrivals_high: SlidingExtreme = field(default_factory=lambda: SlidingExtreme(keep="largest"))
    """Over the longest hold: the most that arrivals needed, without queues and, while the error
    budget is unspent, without what the risk level adds."""
    waiting_low: SlidingExtreme = field(default_factory=lambda: SlidingExtreme(keep="smallest"))
    """Waiting requests, over the shortest burst window."""
    coverage: Coverage = field(default_factory=Coverage)
    correction: Correction = field(default_factory=Correction)
    routing_transition: RoutingTransition = field(default_factory=RoutingTransition)
    sufficient_since_s: float | None = None
    """Time since which the ready replicas suffice by the model; None while they do not."""
    in_flight: InFlightHistory = field(default_factory=InFlightHistory)
    carried: Carried = field(default_factory=Carried)
    open_stream: OpenStream = field(default_factory=OpenStream)
    connections: Connections = field(default_factory=Connections)
    obstacles: Obstacles = field(default_factory=Obstacles)
    shared_limit: SharedLimit = NO_SHARED_LIMIT
    before_overload: tuple[CostLearner, Risk] | None = None
    """The cost and the risk level when the present overload began; None without one."""
    retries: Retries = field(default_factory=Retries)
    budget: ErrorBudget = field(default_factory=ErrorBudget)
    failures: Failures = field(default_factory=Failures)
    margin: Margin = field(default_factory=Margin)
    reserve: Reserve = field(default_factory=Reserve)
    risk: Risk = field(default_factory=Risk)
    steady_since_s: float | None = None
    """Time since which the ready replicas carry the counted arrivals; None while they do not."""
    flaps: Flaps = field(default_factory=Flaps)
    forecast: Forecast = field(default_factory=Forecast)
    ready: int = 0
    ready_since_s: float = 0.0
    """Time when the number of ready replicas last changed."""
    decided: int | None = None
    """Replicas of the last decision."""
    changes: tuple[tuple[float, int], ...] = ()
    """(time, requested replicas) at each change, oldest first; used by the rate limits."""
    generation: GenerationState = field(default_factory=GenerationState)
    """Learned values of a service that generates tokens: cost of an iteration, lengths, tails."""
    classes: ClassState = field(default_factory=ClassState)
    """Given to each decision and not remembered: promises and measurements per class."""
    passing: Passing = field(default_factory=Passing)
    """In a decode pool: how much of what reaches the prefill pool is passed on to it."""
    contradictions: Contradictions = field(default_factory=Contradictions)
    """Replicas whose samples the others contradict."""
    repeated_pages: RepeatedPages = field(default_factory=RepeatedPages)
    """Replicas whose page stays the same while requests are in flight."""
    replacer: Replacer = field(default_factory=Replacer)
    """Evidence against single replicas, and the replacement in progress."""
    rebalancer: Rebalancer = field(default_factory=Rebalancer)
    """Evictions that let connections be spread."""

    @classmethod
    def initial(cls) -> State:
        """Return the state of a service without history."""
        return cls()

    def to_checkpoint(self) -> dict[str, object]:
        """Return the checkpoint for a restart as JSON values: below 2 KiB, or 3 with generation."""
        generation = [short(number) for number in learned_checkpoint.to_numbers(self.generation)]
        kept: dict[str, object] = {
            "version": CHECKPOINT_VERSION,
            **learner_checkpoint.to_checkpoint(self.learner),
            "correction": [short(math.exp(self.correction.logarithm))],
            **promise_checkpoint.to_checkpoint(self.margin, self.risk, self.budget, self.reserve),
            "coldStarts": [short(seconds) for seconds in self.cold_starts.seconds],
            **self.passing.to_checkpoint(),
        }
        decided_s = self.restored_s if self.last_s is None else self.last_s
        if decided_s is not None:
            kept |= self._hour.to_checkpoint(decided_s)
        if generation:
            kept["generation"] = generation
        return kept

    @property
    def _hour(self) -> LastHour:
        return LastHour(flaps=self.flaps, arrivals_high=self.arrivals_high, forecast=self.forecast)

    def begun(self, now_s: float) -> State:
        """Return the state for the first tick of a process: nothing of a later time."""
        hour = self._hour.until(now_s)
        return replace(
            self,
            flaps=hour.flaps,
            arrivals_high=hour.arrivals_high,
            forecast=hour.forecast,
        )

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> State:
        """Return the state that `to_checkpoint` saved.

        Raise ValueError with the rule and the value if the checkpoint is anything else.
        """
        version = checkpoint.get("version")
        if version != CHECKPOINT_VERSION:
            raise ValueError(f"checkpoint version must be {CHECKPOINT_VERSION}; got {version!r}")
        factors = numbers_of(checkpoint, "correction")
        if len(factors) != 1 or not SMALLEST <= factors[0] <= LARGEST:
            rule = f"one number in {SMALLEST:g}..{LARGEST:g}"
            raise ValueError(f"checkpoint correction must hold {rule}; got {factors}")
        margin, risk, budget, reserve = promise_checkpoint.from_checkpoint(checkpoint)
        decided_s, hour = LastHour.from_checkpoint(checkpoint)
        learned = numbers_of(checkpoint, "generation") if "generation" in checkpoint else []
        return cls(
            generation=learned_checkpoint.from_numbers(learned),
            margin=margin,
            reserve=reserve,
            risk=risk,
            budget=budget,
            correction=Correction(logarithm=math.log(factors[0])),
            learner=learner_checkpoint.from_checkpoint(checkpoint),
            cold_starts=cold_start.of_checkpoint(checkpoint),
            passing=Passing.from_checkpoint(checkpoint),
            flaps=hour.flaps,
            arrivals_high=hour.arrivals_high,
            forecast=hour.forecast,
            restored_s=decided_s,
        )

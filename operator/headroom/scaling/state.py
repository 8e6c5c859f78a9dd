"""Everything that the decision remembers about one service; immutable, replaced at each tick.

Learned values (cost, correction, cold starts) survive a restart through a checkpoint in the
object's status, and so does what the last hour has taught (`last_hour`). Windows do not: time
without metrics proves nothing, so a restart begins a new hold and no replica is removed until it
has passed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.scaling.checkpoint_numbers import Checkpoint, numbers_of, short
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.execution_variation import MOST_CV, ExecutionVariation
from headroom.scaling.cost.line_fit import SUMS, Sums
from headroom.scaling.demand.connections import Connections
from headroom.scaling.demand.hidden_demand import InFlightHistory
from headroom.scaling.demand.obstacles import Obstacles
from headroom.scaling.demand.retries import Retries
from headroom.scaling.demand.shared_limit import NO_SHARED_LIMIT, SharedLimit
from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.frozen import replace
from headroom.scaling.generation import learned_checkpoint
from headroom.scaling.generation.class_judgement import ClassState
from headroom.scaling.generation.learned import GenerationState
from headroom.scaling.last_hour import LastHour
from headroom.scaling.latency.correction import LARGEST, SMALLEST, Correction
from headroom.scaling.limits.cold_start import KEPT, ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.failures import Failures
from headroom.scaling.promise.margin import LARGEST as LARGEST_BETA
from headroom.scaling.promise.margin import Margin
from headroom.scaling.promise.reserve import Reserve
from headroom.scaling.promise.risk import Risk
from headroom.scaling.replacement.rebalancer import Rebalancer
from headroom.scaling.replacement.replacer import Replacer
from headroom.scaling.routing_transition import RoutingTransition
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.contradictions import Contradictions
from headroom.scaling.windows.repeated_pages import RepeatedPages
from headroom.scaling.windows.sliding_windows import Windows

CHECKPOINT_VERSION = 3
MOST_COUNTED, MOST_BATCH, MOST_SECONDS = 2.0**53, 2.0**20, 86_400.0
"""As for the numbers of a page (`telemetry/physical_bounds.py`): who may write status may write
anything into a checkpoint."""
MOST_BIN = 64


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
    """Over the longest hold: the most replicas that arrivals needed, without queues."""
    waiting_low: SlidingExtreme = field(default_factory=lambda: SlidingExtreme(keep="smallest"))
    """Waiting requests, over the shortest burst window."""
    coverage: Coverage = field(default_factory=Coverage)
    correction: Correction = field(default_factory=Correction)
    routing_transition: RoutingTransition = field(default_factory=RoutingTransition)
    sufficient_since_s: float | None = None
    """Since when the ready replicas suffice according to the model; None while they do not."""
    in_flight: InFlightHistory = field(default_factory=InFlightHistory)
    connections: Connections = field(default_factory=Connections)
    obstacles: Obstacles = field(default_factory=Obstacles)
    shared_limit: SharedLimit = NO_SHARED_LIMIT
    retries: Retries = field(default_factory=Retries)
    budget: ErrorBudget = field(default_factory=ErrorBudget)
    failures: Failures = field(default_factory=Failures)
    margin: Margin = field(default_factory=Margin)
    reserve: Reserve = field(default_factory=Reserve)
    risk: Risk = field(default_factory=Risk)
    steady_since_s: float | None = None
    """Since when the ready replicas carry the counted arrivals; None while they do not."""
    flaps: Flaps = field(default_factory=Flaps)
    forecast: Forecast = field(default_factory=Forecast)
    ready: int = 0
    ready_since_s: float = 0.0
    """When the number of ready replicas last changed."""
    decided: int | None = None
    """Replicas of the last decision."""
    changes: tuple[tuple[float, int], ...] = ()
    """(time, requested replicas) at each change, oldest first; used by the rate limits."""
    generation: GenerationState = field(default_factory=GenerationState)
    """What is learned of a service that generates tokens: cost of an iteration, lengths, tails."""
    classes: ClassState = field(default_factory=ClassState)
    """Given to each decision and not remembered: promises and measurements per class."""
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
        """Return what survives a restart, as JSON values: less than 2 KiB, or 3 with generation."""
        generation = [short(number) for number in learned_checkpoint.to_numbers(self.generation)]
        kept: dict[str, object] = {
            "version": CHECKPOINT_VERSION,
            "cost": [
                [number, *(short(total) for total in sums)]
                for number, sums in sorted(self.learner.bins.items())
            ],
            "variation": [
                *(short(total) for total in self.learner.variation.believed),
            ],
            "correction": [short(math.exp(self.correction.logarithm))],
            "promise": [
                short(self.margin.beta),
                short(self.risk.level),
                short(self.budget.late),
                short(self.budget.ended),
            ],
            "reserve": [short(self.reserve.remaining)],
            "coldStarts": [short(seconds) for seconds in self.cold_starts.seconds],
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
        beta, level, late, ended = _promise(checkpoint)
        decided_s, hour = LastHour.from_checkpoint(checkpoint)
        learned = numbers_of(checkpoint, "generation") if "generation" in checkpoint else []
        return cls(
            generation=learned_checkpoint.from_numbers(learned),
            margin=Margin(beta=beta),
            reserve=_reserve(checkpoint),
            risk=Risk(level=level),
            budget=ErrorBudget(late=late, ended=ended),
            correction=Correction(logarithm=math.log(factors[0])),
            learner=CostLearner(bins=_bins(checkpoint), variation=_variation(checkpoint)),
            cold_starts=ColdStarts(seconds=_cold_starts(checkpoint)),
            flaps=hour.flaps,
            arrivals_high=hour.arrivals_high,
            forecast=hour.forecast,
            restored_s=decided_s,
        )


def _bins(checkpoint: Checkpoint) -> dict[int, Sums]:
    """Read the sums of each bin of batch sizes: [bin, sums...]."""
    rows = checkpoint.get("cost")
    if not isinstance(rows, list):
        raise ValueError(f"checkpoint cost must be a list of lists; got {rows!r}")
    bins: dict[int, Sums] = {}
    for row in rows:
        numbers = numbers_of({"cost": row}, "cost")
        if len(numbers) != 1 + SUMS or not numbers[0].is_integer():
            raise ValueError(f"checkpoint cost must hold a bin and {SUMS} sums; got {row!r}")
        if 0.0 in numbers[1:]:
            raise ValueError(f"checkpoint cost must hold sums > 0; got {row!r}")
        if not _possible(int(numbers[0]), tuple(numbers[1:])):
            rule = f"sums of batches <= {MOST_BATCH:g} requests and {MOST_SECONDS:g} s"
            raise ValueError(f"checkpoint cost must hold {rule}; got {row!r}")
        bins[int(numbers[0])] = tuple(numbers[1:])
    return bins


def _possible(number: int, sums: Sums) -> bool:
    """Whether executed batches can have these sums: beyond, squares of them would overflow."""
    weight, sizes, sizes_squared, seconds, products = sums
    return (
        number <= MOST_BIN
        and weight <= MOST_COUNTED
        and sizes <= MOST_BATCH * weight
        and sizes_squared <= MOST_BATCH * sizes
        and seconds <= MOST_SECONDS * weight
        and products <= MOST_SECONDS * sizes
    )


def _variation(checkpoint: Checkpoint) -> ExecutionVariation:
    numbers = numbers_of(checkpoint, "variation")
    if len(numbers) != 2 or (numbers[0] > 0 and numbers[1] == 0):
        rule = "a sum of squares and how many there were"
        raise ValueError(f"checkpoint variation must hold {rule}; got {numbers}")
    if numbers[0] > MOST_CV**2 * numbers[1] or numbers[1] > MOST_COUNTED:
        rule = f"squares of at most {MOST_CV:g} each"
        raise ValueError(f"checkpoint variation must hold {rule}; got {numbers}")
    return ExecutionVariation(squares=numbers[0], differences=numbers[1])


def _cold_starts(checkpoint: Checkpoint) -> tuple[float, ...]:
    numbers = numbers_of(checkpoint, "coldStarts")
    if max(numbers, default=0.0) > MOST_SECONDS:
        rule = f"seconds <= {MOST_SECONDS:g}"
        raise ValueError(f"checkpoint coldStarts must hold {rule}; got {numbers}")
    return tuple(numbers[-KEPT:])


def _promise(checkpoint: Checkpoint) -> tuple[float, float, float, float]:
    """Read margin, risk level and the hour's misses; none of them in an older checkpoint."""
    if "promise" not in checkpoint:
        return 0.0, 0.0, 0.0, 0.0
    numbers = numbers_of(checkpoint, "promise")
    if len(numbers) != 4:
        rule = "a margin, a risk level, late and ended requests"
        raise ValueError(f"checkpoint promise must hold {rule}; got {numbers}")
    beta, level, late, ended = numbers
    if beta > LARGEST_BETA or level > 1.0 or not late <= ended <= MOST_COUNTED:
        rule = f"a margin <= {LARGEST_BETA:g}, a level <= 1 and late <= ended <= {MOST_COUNTED:g}"
        raise ValueError(f"checkpoint promise must hold {rule}; got {numbers}")
    return beta, level, late, ended


def _reserve(checkpoint: Checkpoint) -> Reserve:
    """Read what remains of the reserve; an older checkpoint has all of it."""
    if "reserve" not in checkpoint:
        return Reserve()
    numbers = numbers_of(checkpoint, "reserve")
    if len(numbers) != 1 or numbers[0] > 1.0:
        raise ValueError(f"checkpoint reserve must hold one number <= 1; got {numbers}")
    return Reserve(remaining=numbers[0])

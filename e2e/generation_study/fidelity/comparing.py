"""The plant on the requests of a recording: calibrated from recorded iterations, then compared.

Twice: with the times as recorded; and with every iteration of vLLM at its calibrated time, so that
what else the machine did meanwhile is not compared. The second distinguishes scheduling from the
machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from generation_study.fidelity.data import Played, Recorded
from generation_study.fidelity.loads import CALIBRATION, LIMITS
from headroom.scaling.generation.learning.iteration_cost.least_squares import non_negative
from headroom.scaling.generation.learning.model_inputs import scaled
from headroom.scaling.values.tokens import IterationCost, TokenTargets
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.state import allocate
from headroom.simulator.generation.outcome import latencies
from headroom.simulator.generation.plant import Engine, TokenService
from headroom.simulator.generation.requests import Requests

Floats = NDArray[np.float64]
PERCENTILE = 0.95
_ROUNDED_S = 2e-3
"""Times are kept to a microsecond, and thousands of them are summed."""
PROMISED = 0.1
"""The plant's percentiles within this much of vLLM's."""
SEEDS = range(5)
"""Draws of the plant's noise; medians are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """VLLM's 95th percentile, and the plant's."""

    first_token_s: tuple[float, float]
    output_token_s: tuple[float, float]

    @property
    def first_token_error(self) -> float:
        """Return the plant's relative error."""
        return self.first_token_s[1] / self.first_token_s[0] - 1.0

    @property
    def output_token_error(self) -> float:
        """Return the plant's relative error."""
        return self.output_token_s[1] / self.output_token_s[0] - 1.0

    @property
    def holds(self) -> bool:
        """Return whether both are as promised."""
        return max(abs(self.first_token_error), abs(self.output_token_error)) <= PROMISED


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One load."""

    name: str
    requests: int
    iterations: int
    preempted: int
    scale: float
    """Factor of the calibrated cost, in this load: the machine's speed varies."""
    noise: float
    recorded: Percentiles
    """With the times as recorded."""
    undisturbed: Percentiles
    """With every iteration of vLLM at its calibrated time."""


def calibrated(iterations: Floats) -> IterationCost:
    """Return the cost that fits recorded iterations: relative errors, outliers weighted down."""
    terms, seconds = _terms(iterations), iterations[:, 4]
    weights = 1.0 / seconds
    found = np.zeros(terms.shape[1])
    for _ in range(10):
        weighted = terms * (weights**2)[:, None]
        found = non_negative(weighted.T @ terms, weighted.T @ seconds)
        errors = np.abs(seconds / np.maximum(terms @ found, 1e-9) - 1.0)
        usual = 3.0 * float(np.median(errors))
        weights = np.sqrt(np.minimum(1.0, usual / np.maximum(errors, 1e-9))) / seconds
    return IterationCost(
        fixed_s=float(found[0]),
        prompt_token_s=float(found[1]),
        sequence_s=float(found[2]),
        context_token_s=float(found[3]),
        prompt_product_s=float(found[4]),
    )


def compare(recorded: Recorded) -> list[Compared]:
    """Compare every load but the calibration."""
    by_name = {one.name: one for one in recorded.played}
    cost = calibrated(by_name[CALIBRATION].iterations)
    return [_compared(one, cost) for one in recorded.played if one.name != CALIBRATION]


def _compared(one: Played, cost: IterationCost) -> Compared:
    ratios = one.iterations[:, 4] / predicted(cost, one.iterations)
    scale = float(one.iterations[:, 4].sum() / predicted(cost, one.iterations).sum())
    noise = min(0.5, float(np.std(np.minimum(ratios / scale, 3.0))))
    here = scaled(cost, scale)
    return Compared(
        name=one.name,
        requests=len(one.requests),
        iterations=len(one.iterations),
        preempted=one.preempted,
        scale=scale,
        noise=noise,
        recorded=_percentiles(one, here, noise),
        undisturbed=_percentiles(undisturbed(one, here), here, 0.0),
    )


def _percentiles(one: Played, cost: IterationCost, noise: float) -> Percentiles:
    runs = [simulated(one, cost, noise, seed) for seed in (SEEDS if noise else SEEDS[:1])]
    first, output = (
        (p95(real), float(np.median([p95(run[place]) for run in runs])))
        for place, real in enumerate((one.time_to_first_token_s, one.time_per_output_token_s))
    )
    return Percentiles(first_token_s=first, output_token_s=output)


def undisturbed(one: Played, cost: IterationCost) -> Played:
    """Return the load on a clock on which each iteration took what the cost says.

    While nothing ran, the clocks go alike.
    """
    arrived = np.array([each.arrival_s for each in one.requests])
    ended = np.sort(one.end_s)
    clock_s, theirs, ours = 0.0, [0.0], [0.0]
    for seconds, should_s in zip(
        one.iterations[:, 4].tolist(), predicted(cost, one.iterations).tolist(), strict=True
    ):
        begun = int(np.searchsorted(arrived, clock_s + _ROUNDED_S, side="right"))
        over = int(np.searchsorted(ended, clock_s + _ROUNDED_S, side="right"))
        if begun == over < len(arrived):
            gap_s = max(0.0, float(arrived[begun]) - clock_s)
            clock_s += gap_s
            theirs.append(clock_s)
            ours.append(ours[-1] + gap_s)
        clock_s += seconds
        theirs.append(clock_s)
        ours.append(ours[-1] + should_s)
    moved = [np.interp(times, theirs, ours) for times in (arrived, one.first_s, one.end_s)]
    return replace(
        one,
        requests=tuple(
            each._replace(arrival_s=float(at_s))
            for each, at_s in zip(one.requests, moved[0], strict=True)
        ),
        first_s=moved[1],
        end_s=moved[2],
    )


def simulated(one: Played, cost: IterationCost, noise: float, seed: int) -> tuple[Floats, Floats]:
    """Return time to first token and time per output token of each request in the plant."""
    block = LIMITS["block_size"]
    engine = Engine(
        cost=cost,
        kv_tokens=block * LIMITS["num_gpu_blocks_override"],
        sequences=LIMITS["max_num_seqs"],
        iteration_tokens=LIMITS["max_num_batched_tokens"],
        block_tokens=block,
        noise_cv=noise,
    )
    requests = Requests(
        arrival_s=np.array([each.arrival_s for each in one.requests]),
        prompt_tokens=np.array([each.prompt_tokens for each in one.requests]),
        output_tokens=np.array([each.output_tokens for each in one.requests]),
    )
    plant = allocate(TokenService(engine=engine, targets=TokenTargets()), requests, 1, seed + 1)
    kernel.admit(plant, 0)
    kernel.advance(plant, math.inf)
    first, output, _ = latencies(plant)
    return first, output[requests.output_tokens > 1]


def predicted(cost: IterationCost, iterations: Floats) -> Floats:
    """Return the seconds of iterations by a cost."""
    coefficients: Sequence[float] = (
        cost.fixed_s,
        cost.prompt_token_s,
        cost.sequence_s,
        cost.context_token_s,
        cost.prompt_product_s,
    )
    found: Floats = _terms(iterations) @ np.array(coefficients)
    return found


def p95(values: Floats) -> float:
    """Return the 95th percentile, as one of the values."""
    return float(np.quantile(values, PERCENTILE, method="higher"))


def _terms(iterations: Floats) -> Floats:
    return np.column_stack([np.ones(len(iterations)), iterations[:, :4]])

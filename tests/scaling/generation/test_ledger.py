"""The ledger learns the cost of engines that are unlike the measured ones, within a minute."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

import numpy as np
import pytest

from headroom.scaling import State
from headroom.scaling.generation.learning import learned_checkpoint
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.mean_iterations import Intervals
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.generation.learning.iteration_cost.steadiness import RECENT_S
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.learning.model_inputs import scaled
from headroom.scaling.generation.learning.request_lengths.length_sums import WIDTH
from headroom.scaling.generation.learning.request_lengths.lengths import Lengths
from headroom.scaling.values.tokens import IterationCost

PROMPT, STEPS, CONTEXT = 800.0, 100.0, 850.0
SPREAD = 1.3
"""Largest over smallest cost of a full iteration in half an hour of a shared machine."""
EVERY = 50
"""Iterations between two pages."""


def learned(
    cost: tuple[float, float, float],
    iterations: int,
    noise: float,
    seed: int,
    more: float = 23.0,
) -> Ledger:
    """Return what pages with exact sums teach of t = a + b P + d D, 2 to 2 + more sequences."""
    random = np.random.default_rng(seed)
    sequences = np.cumsum(random.normal(0.0, 1.0, iterations)) % (2.0 * more) - more
    sequences = np.round(2.0 + np.abs(sequences))
    prompts = np.where(random.random(iterations) < 0.08, PROMPT, 0.0)
    features = np.column_stack(
        (
            np.ones(iterations),
            prompts,
            sequences,
            CONTEXT * sequences,
            prompts * PROMPT / 2.0,
        )
    )
    seconds = features[:, :3] @ np.array(cost) * (1.0 + noise * random.normal(size=iterations))
    ledger = Ledger()
    for start in range(0, iterations, EVERY):
        part, taken = features[start : start + EVERY], seconds[start : start + EVERY]
        ledger = ledger.observe_sums(part.T @ part, part.T @ taken, Ratios(), 2.0, PROMPT)
    return ledger


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    "cost",
    [
        (0.030, 2e-5, 3e-3),  # a sequence takes a tenth of the fixed time: forty times as much
        (0.030, 2e-5, 3e-4),
        (0.0057, 1.7e-5, 5e-5),  # as measured engines
        (0.0210, 6e-5, 2e-4),
    ],
)
def test_a_minute_of_load_teaches_the_work_of_a_request(
    cost: tuple[float, float, float], noise: float
) -> None:
    fixed_s, prompt_s, sequence_s = cost
    for seed in range(3):
        estimate = learned(cost, 1500, noise, seed).fit(Ratios())
        assert estimate is not None
        found = estimate.cost(Ratios())
        work_s = PROMPT * (found.prompt_token_s + found.prompt_product_s * PROMPT / 2.0)
        work_s += STEPS * (found.sequence_s + found.context_token_s * CONTEXT)
        assert found.fixed_s == pytest.approx(fixed_s, rel=0.03 + 0.4 * noise)
        # an error of 3 % of the fixed time at a mean of 13 sequences is all that noise can hide
        hidden_s = 0.03 * noise / 0.1 * fixed_s * STEPS / 13.0
        expected_s = PROMPT * prompt_s + STEPS * sequence_s
        assert work_s == pytest.approx(expected_s, rel=0.06, abs=hidden_s)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("more", [6.0, 10.0])
@pytest.mark.parametrize(("iterations", "within"), [(500, 0.75), (1600, 0.25)])
def test_a_narrow_load_on_an_unusual_engine_is_no_mixture_of_experts(
    iterations: int, within: float, more: float, noise: float
) -> None:
    for seed in range(3):
        estimate = learned((0.030, 2e-5, 3e-3), iterations, noise, seed, more).fit(Ratios())
        assert estimate is not None
        assert estimate.share == 0.0
        found = estimate.cost(Ratios())
        sequence_s = found.sequence_s + found.context_token_s * CONTEXT
        assert sequence_s == pytest.approx(3e-3, rel=within)


COST = IterationCost(fixed_s=0.0057, prompt_token_s=1.7e-5, sequence_s=5e-5, context_token_s=1e-8)
TEACH_S = 10.0


def interval(cost: IterationCost, pods: int, sequences: float = 20.0) -> Intervals:
    """Ten busy seconds of each replica, with contexts of 2000 tokens."""
    every = np.ones(pods)
    contexts = 2000.0 * sequences
    second = cost.iteration_s(200.0, sequences, contexts)
    return Intervals(
        iterations=TEACH_S / second * every,
        seconds=second * every,
        prompt_tokens=200.0 * every,
        sequences=sequences * every,
        context_tokens=contexts * every,
        products=0.0 * every,
        prompt_share=0.1 * every,
    )


def joined(one: Intervals, two: Intervals) -> Intervals:
    names = Intervals.__dataclass_fields__
    return Intervals(**{name: np.append(getattr(one, name), getattr(two, name)) for name in names})


@pytest.mark.parametrize(
    ("slow", "usual", "seconds", "learns"),
    [
        pytest.param(3, 0, 20.0, False, id="a hang or a compilation"),
        pytest.param(3, 0, 180.0, True, id="all, for minutes: another engine"),
        pytest.param(1, 2, 180.0, False, id="one of three hangs"),
    ],
)
def test_engine_that_takes_many_times_as_long(
    slow: int, usual: int, seconds: float, learns: bool
) -> None:
    ledger, slower, expected = Ledger(), scaled(COST, 8.0), COST
    for _ in range(30):
        ledger = ledger.observe(interval(COST, 3), Ratios(), TEACH_S, COST)
    for _ in range(round(seconds / TEACH_S)):
        found = interval(slower, slow)
        found = joined(found, interval(COST, usual)) if usual else found
        ledger = ledger.observe(found, Ratios(), TEACH_S, expected)
        estimate = ledger.fit(Ratios())
        assert estimate is not None
        expected = estimate.cost(Ratios())
    measured = expected.iteration_s(200.0, 20.0, 40_000.0)
    wanted = (slower if learns else COST).iteration_s(200.0, 20.0, 40_000.0)
    assert measured == pytest.approx(wanted, rel=0.1)


def after(ledger: Ledger, speeds: Iterable[float]) -> tuple[Ledger, list[float]]:
    """Return the ledger, and a full iteration over the true one in each step at these speeds."""
    found: list[float] = []
    for speed in speeds:
        estimate = ledger.fit(Ratios())
        expected = COST if estimate is None else estimate.cost(Ratios())
        sequences = 1.0 + len(found) % 3
        ledger = ledger.observe(
            interval(scaled(COST, speed), 2, sequences), Ratios(), TEACH_S, expected
        )
        estimate = ledger.fit(Ratios())
        assert estimate is not None
        full = estimate.cost(Ratios()).iteration_s(200.0, 64.0, 128_000.0)
        found.append(full / COST.iteration_s(200.0, 64.0, 128_000.0))
    return ledger, found


def test_machine_that_other_work_shares_is_learned_as_its_mean() -> None:
    """30 % faster and slower, for 40 s each, at one to three sequences, for an hour."""
    spreads, kept = [], math.exp(-TEACH_S / 40.0)
    for seed in range(4):
        random, wandering, speeds = np.random.default_rng(seed), 0.0, []
        for _ in range(360):
            wandering = kept * wandering + 0.3 * math.sqrt(1.0 - kept * kept) * random.normal()
            speeds.append(math.exp(wandering - 0.3**2 / 2.0))
        settled = after(Ledger(), speeds)[1][180:]
        spreads.append(max(settled) / min(settled))
    assert median(spreads) < SPREAD


def test_another_engine_is_learned_within_minutes_on_a_steady_machine() -> None:
    ledger, _ = after(Ledger(), [1.0] * 180)
    ledger, slower = after(ledger, [2.0] * 24)
    assert slower[-1] == pytest.approx(2.0, rel=0.1)
    _, back = after(ledger, [1.0] * 60)
    assert back[-1] == pytest.approx(1.0, rel=0.15)


def test_engine_unlike_a_stated_cost_is_learned() -> None:
    ledger, stated = Ledger(), scaled(COST, 1.0 / 8.0)
    for number in range(30):
        ledger = ledger.observe(interval(COST, 2), Ratios(), TEACH_S, stated)
        assert bool(ledger.bins) == ((number + 1) * TEACH_S >= RECENT_S)


def test_checkpoint_of_a_large_fleet_can_be_read() -> None:
    """64 replicas with ten million tokens in contexts each: sums of 1e22 after an hour."""
    ledger = Ledger()
    for _ in range(360):
        ledger = ledger.observe(interval(COST, 64, 5000.0), Ratios(), TEACH_S, COST)
    known = GenerationState(ledger=ledger, lengths=Lengths(slow=(10.0,) * WIDTH))
    numbers = learned_checkpoint.to_numbers(known)
    assert max(numbers) > 1e18
    found = learned_checkpoint.from_numbers(numbers).ledger.fit(Ratios())
    before = ledger.fit(Ratios())
    assert found is not None
    assert before is not None
    assert found.parts == pytest.approx(before.parts, rel=1e-6)
    assert State.from_checkpoint(State(generation=known).to_checkpoint()).generation.ledger.bins

"""The lengths of requests, from counters of what is computed and of what has ended."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.generation.counters.length_moments import moments
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_BUCKET, Count, Grid
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.learning.request_lengths.length_sums import (
    ARRIVED,
    COMPUTED,
    OUTPUT,
    OUTPUT2,
    OUTPUTS,
    PROMPT,
    PROMPT2,
    PROMPTS,
    WIDTH,
)
from headroom.scaling.generation.learning.request_lengths.lengths import RECOMPUTED_S, Lengths
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import GenerationSample, TokenCounts
from support.fakes_scaling import sample

GRID = Grid(prompt=(2048.0, math.inf), output=(256.0, math.inf))


def counted(
    arrivals: float,
    computed: float,
    *,
    preempted: float = 0.0,
    waiting: float = 0.0,
    cached: float = math.nan,
    prompt: float = 1000.0,
    timed: float = math.nan,
    generated: float = math.nan,
) -> Increase:
    """Return the increase of one pod: requests of 1000 and 100 tokens that arrive and end."""
    added = np.full((1, FIRST_BUCKET + GRID.buckets), np.nan)
    added[0, Count.TIMED_PROMPTS] = timed
    added[0, Count.ARRIVALS], added[0, Count.MISSED] = arrivals, 0.0
    added[0, Count.COMPUTED], added[0, Count.PREEMPTIONS] = computed, preempted
    added[0, Count.CACHED], added[0, Count.GENERATED] = cached, generated
    added[0, Count.PROMPT_TOTAL], added[0, Count.OUTPUT_TOTAL] = prompt * arrivals, 100 * arrivals
    added[0, FIRST_BUCKET:] = arrivals
    return Increase(
        pods=("pod",),
        elapsed_s=np.array([2.0]),
        added=added,
        context_tokens=np.array([math.nan]),
        waiting_tokens=np.array([waiting]),
    )


def prompt_of(lengths: Lengths) -> float:
    shape = lengths.shape
    assert shape is not None
    return shape.prompt_tokens


def observed(lengths: Lengths, increase: Increase, ticks: int) -> Lengths:
    for _ in range(ticks):
        lengths = lengths.observe(increase, GRID, 2.0)
    return lengths


def test_lengths_of_a_service_that_preempts_leave_out_what_is_computed_again() -> None:
    """Four contexts are computed again per arrival, which is no longer prompt."""
    usual = observed(Lengths(), counted(10, 10_000), 60)
    preempting = observed(usual, counted(10, 50_000, preempted=8), 60)
    assert prompt_of(preempting) == pytest.approx(1000, rel=0.01)
    settling = observed(preempting, counted(10, 50_000), int(RECOMPUTED_S / 2.0) - 1)
    assert prompt_of(settling) == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize(("cached", "share"), [(math.nan, 1.0), (5_000.0, 0.5)])
def test_lengths_of_a_service_that_preempts_follow_the_requests_that_end(
    cached: float, share: float
) -> None:
    """Longer prompts make a service preempt: with the former lengths it would go on."""
    usual = observed(Lengths(), counted(10, share * 10_000, cached=cached), 60)
    again = counted(10, 90_000, preempted=8, cached=cached, prompt=4000.0)
    shape = observed(usual, again, 120).shape
    assert shape is not None
    assert shape.prompt_tokens == pytest.approx(4000, rel=0.1)
    assert shape.computed_tokens == pytest.approx(share * shape.prompt_tokens, rel=0.01)


@given(st.lists(st.sampled_from([0.0, 1.0, 5.0, 2000.0]), min_size=WIDTH, max_size=WIDTH))
def test_lengths_are_known_where_there_is_a_shape(sums: list[float]) -> None:
    lengths = Lengths(slow=tuple(sums))
    assert lengths.known is (lengths.shape is not None)


def test_lengths_of_prompts_that_grow_follow_within_a_minute() -> None:
    usual = observed(Lengths(), counted(10, 10_000), 60)
    assert prompt_of(observed(usual, counted(10, 50_000), 30)) > 2500


def test_lengths_of_a_busy_service_show_a_new_mix_within_ticks() -> None:
    usual = observed(Lengths(), counted(100, 100_000), 60)
    assert prompt_of(observed(usual, counted(100, 300_000), 6)) > 2000
    few = observed(Lengths(), counted(5, 5_000), 60)
    assert prompt_of(observed(few, counted(5, 15_000), 3)) < 1400


def both(one: Increase, two: Increase) -> Increase:
    return Increase(
        pods=("one", "two"),
        elapsed_s=np.concatenate((one.elapsed_s, two.elapsed_s)),
        added=np.concatenate((one.added, two.added)),
        context_tokens=np.concatenate((one.context_tokens, two.context_tokens)),
        waiting_tokens=np.concatenate((one.waiting_tokens, two.waiting_tokens)),
    )


@pytest.mark.parametrize(
    ("computed", "waiting"), [(math.nan, 0.0), (math.nan, 20_000.0), (4_000.0, 0.0)]
)
def test_lengths_of_pods_of_which_some_report_no_tokens_are_those_of_the_others(
    computed: float, waiting: float
) -> None:
    """Half of the computed tokens over all arrivals would be half a prompt."""
    silent = counted(30, computed, waiting=waiting)
    shape = observed(Lengths(), both(counted(10, 4_000, cached=6_000), silent), 60).shape
    assert shape is not None
    assert (shape.prompt_tokens, shape.computed_tokens) == pytest.approx((1000, 400))


@pytest.mark.parametrize("steps", [math.nan, 1000.0])
@pytest.mark.parametrize("drafts", [math.nan, 0.0])
def test_steps_without_drafts_end_the_effect_of_speculation(steps: float, drafts: float) -> None:
    """1010 tokens of 10 requests: in 500 steps that accept one, then in 1000 without drafts."""

    def counting(steps: float, drafts: float, accepted: float) -> Increase:
        one = counted(10, 10_000)
        one.added[0, [Count.GENERATED, Count.STEPS]] = 1010.0, steps
        one.added[0, [Count.DRAFTS, Count.ACCEPTED]] = drafts, accepted
        return one

    speculating = observed(Lengths(), counting(steps / 2, 500.0, 500.0), 100)
    assert speculating.shape is not None
    assert speculating.shape.accepted_per_step == pytest.approx(2.0)
    after = observed(speculating, counting(steps, drafts, drafts), 1800)
    assert after.shape is not None
    assert after.shape.accepted_per_step < 1.02


def speculating(requests: float, per_step: float) -> Increase:
    """Answers of 100 tokens, of which a step gives this many."""
    one, steps = counted(requests, 1000 * requests), 100 * requests / per_step
    one.added[0, [Count.GENERATED, Count.STEPS]] = 101 * requests, steps
    one.added[0, [Count.DRAFTS, Count.ACCEPTED]] = steps, steps * (per_step - 1)
    return one


@pytest.mark.parametrize(("before", "after"), [(2.4, 1.2), (1.2, 2.4)])
def test_accepted_drafts_of_other_texts_count_within_two_minutes(
    before: float, after: float
) -> None:
    lengths = observed(Lengths(), speculating(30, before), 600)
    shape = observed(lengths, speculating(30, after), 60).shape
    assert shape is not None
    assert shape.accepted_per_step == pytest.approx(after, abs=0.25 * abs(before - after))


def test_accepted_drafts_of_a_few_requests_move_little() -> None:
    lengths = observed(Lengths(), speculating(30, 2.0), 600)
    quiet = observed(lengths, counted(0, 0.0), 120)
    shape = observed(quiet, speculating(1, 1.6), 10).shape
    assert shape is not None
    assert shape.accepted_per_step > 1.9


def test_lengths_of_prompts_that_only_wait_count_at_once() -> None:
    usual = observed(Lengths(), counted(10, 10_000), 60)
    queued = observed(usual, counted(10, 0.0, waiting=50_000), 30)
    assert prompt_of(queued) > 2500


WITH_FIRST_TOKENS = Grid(prompt=GRID.prompt, output=GRID.output, first_token=(1.0, math.inf))


def without_waiting_tokens(arrivals: float, first_tokens: float, computed: float) -> Increase:
    """Return the increase of a vLLM pod, which counts waiting requests but not their lengths."""
    one = counted(arrivals, computed, waiting=math.nan, timed=first_tokens)
    firsts = np.full((1, len(WITH_FIRST_TOKENS.first_token)), first_tokens)
    return replace(one, added=np.concatenate((one.added, firsts), axis=1))


@pytest.mark.parametrize(("arrivals", "first_tokens"), [(90.0, 70.0), (50.0, 70.0)])
def test_prompts_of_requests_that_still_wait_make_the_others_no_shorter(
    arrivals: float, first_tokens: float
) -> None:
    """A queue grows, or is worked off: the tokens are those of the prompts that were computed."""
    one = without_waiting_tokens(arrivals, first_tokens, 1000.0 * first_tokens)
    lengths = Lengths()
    for _ in range(60):
        lengths = lengths.observe(one, WITH_FIRST_TOKENS, 2.0)
    assert prompt_of(lengths) == pytest.approx(1000.0)


def test_longer_prompts_count_at_once_where_those_of_preempted_ones_count_once() -> None:
    """The requests that end after a preemption are the short ones of before."""
    lengths = Lengths()
    for tick in range(180):
        size = 1000.0 if tick < 120 else 4000.0
        one = without_waiting_tokens(70.0, 70.0, 70.0 * size)
        one.added[0, Count.PREEMPTIONS] = 0.0 if tick < 120 else 5.0
        lengths = lengths.observe(one, WITH_FIRST_TOKENS, 2.0)
    assert prompt_of(lengths) > 3500


BY_ONE_TWO_FIVE = (*(float(m * 10**e) for e in range(6) for m in (1, 2, 5)), math.inf)
BY_TWO = (*(2.0**k for k in range(18)), math.inf)


@pytest.mark.parametrize("bounds", [BY_ONE_TWO_FIVE, BY_TWO])
@pytest.mark.parametrize("mean", [250.0, 700.0, 1500.0, 4000.0])
@pytest.mark.parametrize("cv", [0.4, 0.6, 1.0])
def test_squares_of_lengths_in_wide_buckets_are_nearly_the_true_ones(
    bounds: tuple[float, ...], mean: float, cv: float
) -> None:
    random = np.random.default_rng(3)
    for drawn in (
        random.lognormal(
            math.log(mean) - math.log1p(cv * cv) / 2, math.log1p(cv * cv) ** 0.5, 20000
        ),
        random.gamma(1 / cv**2, mean * cv * cv, 20000),
    ):
        cumulative = np.array([float((drawn <= bound).sum()) for bound in bounds])
        count, tokens, squares = moments(bounds, cumulative, float(drawn.sum()))
        assert count == 20000
        assert tokens == pytest.approx(drawn.sum())
        assert squares == pytest.approx((drawn**2).sum(), rel=0.07)


@pytest.mark.parametrize(
    "bounds",
    [(math.inf,), (0.0, 1.0, math.inf), (1.0, 1e150), (2048.0, math.inf), (5.0, 5.0, 7.0), ()],
)
def test_bounds_of_any_kind_give_finite_moments(bounds: tuple[float, ...]) -> None:
    cumulative = np.arange(1.0, len(bounds) + 1.0)
    assert all(math.isfinite(value) for value in moments(bounds, cumulative, 100.0))


def test_one_bucket_says_that_lengths_vary() -> None:
    """Nothing is known within it: evenly filled from zero on, a coefficient of 0.58."""
    count, tokens, squares = moments((2048.0, math.inf), np.array([10.0, 10.0]), 10_000.0)
    assert squares * count / tokens**2 == pytest.approx(4 / 3)


@pytest.mark.parametrize("ticks", [5, 6, 8, 12, 20])
def test_lengths_after_a_step_show_its_whole_height(ticks: int) -> None:
    """Prompts double at 20/s: ten seconds later the mean of 12 s has seen 57 % of it."""
    usual = observed(Lengths(), counted(40, 40_000), 400)
    assert prompt_of(observed(usual, counted(40, 80_000), ticks)) == pytest.approx(2000, rel=0.12)


@pytest.mark.parametrize("together", [True, False])
def test_pages_that_are_new_every_16_s_show_a_step_as_soon_as_others(together: bool) -> None:
    """As from a Prometheus, whose pods are scraped together or in turn; ticks are of 2 s."""

    def page(pod: int, scraped_s: float) -> PodSample:
        """40 prompts arrive per second, of 1000 tokens, and of 3000 from 1000 s on."""
        arrivals = 40.0 * scraped_s
        tokens = 1000.0 * arrivals + 80_000.0 * max(0.0, scraped_s - 1000.0)
        ended = TokenCounts(bounds=(2048.0, math.inf), counts=(arrivals, arrivals), total=tokens)
        one = sample(f"pod-{pod}", scraped_s, arrivals=arrivals, waiting=0, running=9)
        return replace(
            one,
            generation=GenerationSample(
                computed_prompt_tokens=tokens, prompt_lengths=ended, output_lengths=ended
            ),
        )

    def found_s(every_s: float) -> float:
        state = GenerationState()
        for tick in range(1, 800):
            now_s = 2.0 * tick
            offsets = (0.0, 0.0 if together else every_s / 2)
            pages = [
                page(pod, (now_s - offset) // every_s * every_s)
                for pod, offset in enumerate(offsets)
            ]
            state = state.observe(pages, {}, now_s, 2.0, None)
            if now_s > 1000.0 and state.shape and state.shape.prompt_tokens > 2900.0:
                return now_s - 1000.0
        raise AssertionError("not found")

    assert found_s(16.0) <= found_s(2.0) + 2 * 16.0


def test_lengths_that_differ_little_beyond_chance_move_little() -> None:
    usual = observed(Lengths(), counted(40, 40_000), 400)
    moved = [prompt_of(observed(usual, counted(40, size * 40.0), 30)) for size in (1100, 1300)]
    assert moved[0] < 1080
    assert 1200 < moved[1] < 1320


def test_prompts_that_alternate_are_not_taken_for_longer_than_they_are() -> None:
    """The mean of 15 minutes is that of neither mix, so a step does not begin there."""
    short, long = counted(40, 40 * 2000.0, prompt=2000.0), counted(40, 40 * 8000.0, prompt=8000.0)
    lengths = Lengths()
    for _ in range(2):
        lengths = observed(observed(lengths, long, 300), short, 300)
    found = []
    for _ in range(60):
        lengths = observed(lengths, long, 1)
        found.append(prompt_of(lengths))
    assert max(found) < 1.02 * 8000
    assert min(found[9:]) > 0.95 * 8000, "a step shows within 20 s, and goes on to"


@given(height=st.floats(0.2, 5.0), per_tick=st.integers(5, 100))
def test_a_step_is_never_taken_for_higher_than_it_is(height: float, per_tick: int) -> None:
    lengths = observed(Lengths(), counted(per_tick, per_tick * 1000.0), 300)
    after = counted(per_tick, per_tick * 1000.0 * height, prompt=1000.0 * height)
    low, high = sorted((1000.0, 1000.0 * height))
    for _ in range(60):
        lengths = observed(lengths, after, 1)
        assert low * 0.999 <= prompt_of(lengths) <= high * 1.001
    if per_tick >= 20 and not 0.6 < height < 1.6:
        assert prompt_of(lengths) == pytest.approx(1000.0 * height, rel=0.1)


def sums_of(requests: float, prompt: float, cv: float) -> tuple[float, ...]:
    found = [0.0] * WIDTH
    found[ARRIVED], found[COMPUTED] = requests, requests * prompt
    found[PROMPTS], found[PROMPT] = requests, requests * prompt
    found[PROMPT2] = requests * prompt**2 * (1.0 + cv**2)
    found[OUTPUTS], found[OUTPUT], found[OUTPUT2] = requests, 100 * requests, 2e4 * requests
    return tuple(found)


def test_another_mix_of_the_same_requests_varies_as_it_does_alone() -> None:
    """9000 tokens (cv 0.6) or 300: 20 and 90 % in turn, 5085 of cv 1.13 together."""
    arrived = list(sums_of(150, 2040, 2.08))
    arrived[COMPUTED] = 150 * 8130.0
    latest = tuple(arrived)
    shape = Lengths(slow=sums_of(10_000, 5085, 1.13), fast=latest, quick=latest).shape
    assert shape is not None
    cv = math.sqrt(shape.prompt_tokens_squared / shape.prompt_tokens**2 - 1.0)
    assert cv == pytest.approx(0.71, abs=0.15)


def test_lengths_after_a_step_vary_as_they_do_now_and_not_as_before_and_after_together() -> None:
    """Four minutes after answers of up to 256 tokens became ones of 800: half are of before."""
    usual = observed(Lengths(), counted(40, 40_000), 120)
    longer = counted(40, 40_000)
    longer.added[0, Count.OUTPUT_TOTAL] = 800 * 40
    longer.added[0, FIRST_BUCKET + len(GRID.prompt)] = 0.0
    shape = observed(usual, longer, 120).shape
    assert shape is not None
    assert shape.output_tokens == pytest.approx(800, rel=0.03)
    assert shape.output_tokens_squared == pytest.approx(800**2 * 1.06, rel=0.1)


def answers(requests: float, short: float, long: float = 0.0) -> tuple[float, ...]:
    """Return the sums of answers, `long` of which have 30 000 tokens."""
    found = list(sums_of(requests, 1000.0, 0.6))
    found[OUTPUT] = (requests - long) * short + long * 30_000.0
    found[OUTPUT2] = 1.5 * (requests - long) * short**2 + long * 30_000.0**2
    return tuple(found)


@pytest.mark.parametrize(
    ("fast", "mean"),
    [
        pytest.param(answers(117, 200.0, long=4), 309.0, id="four rare ones within a minute"),
        pytest.param(answers(240, 800.0), 790.0, id="all of them are longer"),
        pytest.param(answers(240, 800.0, long=1), 690.0, id="all are, and a rare one ends"),
    ],
)
def test_rare_long_answers_that_end_together_are_no_longer_mean(
    fast: tuple[float, ...], mean: float
) -> None:
    """One answer of 300 has 30 000 tokens, the others 200: 309 on average."""
    slow = answers(2740, 200.0, long=0 if mean == 790.0 else 10)
    shape = Lengths(slow=slow, fast=fast).shape
    assert shape is not None
    assert shape.output_tokens == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize(
    ("generated", "mean"),
    [
        pytest.param(math.nan, 100.0, id="what is generated is not reported"),
        pytest.param(100.0, 100.0, id="as much as ended answers have"),
        pytest.param(60.0, 100.0, id="less: the latest have only begun"),
        pytest.param(101.0, 100.0, id="within chance"),
        pytest.param(150.0, 150.0, id="some still run, and are longer"),
    ],
)
def test_answers_are_as_long_as_what_is_generated_per_arrival(
    generated: float, mean: float
) -> None:
    shape = observed(Lengths(), counted(10, 10_000, generated=10 * generated), 300).shape
    assert shape is not None
    assert shape.output_tokens == pytest.approx(mean, rel=0.005)

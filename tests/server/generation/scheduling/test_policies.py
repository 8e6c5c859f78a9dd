"""Single policies: pace, places, shares, drafts, memory's peak, grammars, prefixes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.errors import QueueFullError
from headroom_server.generation.scheduling.costs.iteration_cost import Features, IterationCost
from headroom_server.generation.scheduling.costs.output_lengths import OutputLengths
from headroom_server.generation.scheduling.costs.pace import pace_of_usual
from headroom_server.generation.scheduling.iterations.memory_peak import peak_tokens
from headroom_server.generation.scheduling.iterations.speculation import DraftCounts
from headroom_server.generation.scheduling.lookup import LookupIndex
from headroom_server.generation.scheduling.memory.prefix_digests import extend
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.token_grammar import TokenGrammar
from headroom_server.generation.values import FinishReason, GenerationRequest
from support.generation_world import LIMITS, Device, World, request


@pytest.mark.parametrize(
    ("promised_s", "waited_s", "decoding", "expected_ms"),
    [
        pytest.param(None, 0.0, True, 10 * 0.22 / 0.78, id="at first a third of the decodes"),
        pytest.param(None, 1.0, True, 10 * 0.44 / 0.56, id="ten times its own time: twice"),
        pytest.param(None, 99.0, True, 10 * 0.85 / 0.15, id="never more than 85 %"),
        pytest.param(0.050, 99.0, True, 35.0, id="promised: up to 90 % of it"),
        pytest.param(0.010, 99.0, True, 0.5, id="promised less than decodes take: some progress"),
        pytest.param(0.050, 0.0, False, 40.0, id="nothing decodes"),
    ],
)
def test_pace_gives_prompts(
    promised_s: float | None, waited_s: float, decoding: bool, expected_ms: float
) -> None:
    given_s = pace_of_usual(
        0.010,
        decoding=decoding,
        promised_s=promised_s,
        backlog_s=0.1,
        waited_s=waited_s,
        own_s=0.1,
        due_within_s=None,
    )
    assert 1000 * given_s.partial_s == pytest.approx(expected_ms)
    assert given_s.finishing_s >= given_s.partial_s


@pytest.mark.parametrize("per_token_s", [0.001, 0.00254, 0.005])
def test_prompt_whose_smallest_chunk_takes_more_than_its_share_is_computed_every_few_iterations(
    per_token_s: float,
) -> None:
    """88 million parameters on a CPU core, as vLLM was measured there, and costlier prompts."""
    device = Device(0.072, per_token_s, 0.0033, 5e-6, 0.0)
    world = World(device)
    world.arrive(request(key, 64, 8, arrived_s=3.0 * key) for key in range(8))  # it learns the cost
    world.arrive([request(8, 64, 200, arrived_s=30.0), request(9, 64, 16, arrived_s=31.0)])
    world.run()
    prompt_s, iteration_s = 64 * per_token_s, device.seconds(Features(0, 2, 400))
    assert world.records[9].first_token_s <= 5 * prompt_s + 2 * iteration_s
    assert world.records[8].per_token_s <= 1.05 * iteration_s


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 300)), max_size=12))
def test_peak_is_that_of_every_step(pairs: list[tuple[int, int]]) -> None:
    steps = range(max((left for _, left in pairs), default=0) + 1)
    by_step = max(sum(now + step for now, left in pairs if left >= step) for step in steps)
    assert peak_tokens([(float(now), float(left)) for now, left in pairs]) == by_step


def test_expected_length_grows_with_what_is_generated() -> None:
    lengths = OutputLengths()
    for at in range(3000):
        lengths.record(20 if at % 10 else 2000)
    assert lengths.expected() == pytest.approx(218, rel=0.2)
    assert lengths.expected(100) == pytest.approx(2000, rel=0.1)
    assert lengths.expected(10**7) > 10**7


def test_lookup_proposes_what_followed_the_latest_occurrence() -> None:
    index, tokens = LookupIndex(), [1, 2, 3, 4, 5, 1, 2, 3, 9, 8, 7, 1, 2, 3]
    assert index.propose(tokens, 2) == (9, 8)
    tokens += [4]
    assert index.propose(tokens, 3) == (5, 1, 2)
    tokens += [77]
    assert index.propose(tokens, 3) == ()


@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=40),
    st.lists(st.integers(0, 3), min_size=8, max_size=40),
)
def test_digests_are_equal_exactly_for_equal_beginnings(one: list[int], other: list[int]) -> None:
    chains: list[list[bytes]] = [[], []]
    for chain, tokens in zip(chains, (one, other), strict=True):
        extend(chain, "t", tokens, 4, len(tokens) // 4)
    for at, (left, right) in enumerate(zip(*chains, strict=False), 1):
        assert (left == right) == (one[: 4 * at] == other[: 4 * at])


def test_draft_models_proposals_are_verified_and_stop_when_they_are_wrong() -> None:
    options = SchedulingOptions(max_drafts=4, draft_model=True)
    device = Device(model=lambda held: 1 + held[-1] % 900)

    def iterations(count: int, right: bool) -> tuple[int, int]:
        scheduler, now_s, drafted = Scheduler(LIMITS, options), 0.0, 0
        for key in range(count):
            scheduler.add(request(key, 64, 60), 0.0)
        while not scheduler.idle:
            wanted = scheduler.wanted_drafts()
            if wanted is not None:
                drafted += 1
                tails = [one.tokens[-1] for one in wanted.sequences]
                step = 1 if right else 2
                scheduler.take_drafts(
                    wanted, [[1 + (t - 1 + step * k) % 900 for k in range(1, 9)] for t in tails]
                )
            iteration = scheduler.next_iteration(now_s)
            assert iteration is not None
            result, began_s = device.execute(iteration), now_s
            now_s += 0.005 + 0.002 * sum(len(chunk.tokens) for chunk in iteration.chunks)
            scheduler.complete(iteration, result, began_s, now_s)
        return scheduler.statistics.iterations, drafted

    few, _ = iterations(1, right=True)
    assert few < 40
    wrong, drafted = iterations(1, right=False)
    assert wrong >= 60
    assert drafted < 30


def known_cost() -> IterationCost:
    cost, true = IterationCost(), Device()
    for at in range(1, 200):
        features = Features(37 * at % 500, at % 64, 900 * (at % 64), 100.0 * (at % 30))
        cost.observe(features, true.seconds(features))
    return cost


def test_uncertain_drafts_pay_alone_and_not_in_a_large_batch() -> None:
    cost = known_cost()
    assert DraftCounts(cost, 1, 1000, 8).best(0.7) == 8
    assert DraftCounts(cost, 256, 256_000, 8).best(0.1) == 0
    assert DraftCounts(cost, 1, 1000, 8).best(0.0) == 0


class Letters:
    """A grammar that wants 5, then 6, and nothing more."""

    def __init__(self) -> None:
        self._wanted = [5, 6]

    def allowed(self) -> memoryview:
        return memoryview(bytes(128))

    def accept(self, token: int) -> bool:
        return bool(self._wanted) and self._wanted.pop(0) == token

    @property
    def finished(self) -> bool:
        return not self._wanted


@pytest.mark.parametrize(
    ("second", "finish"), [(6, FinishReason.STOP), (7, FinishReason.CONSTRAINT)]
)
def test_grammar_ends_the_answer(second: int, finish: FinishReason) -> None:
    grammar: TokenGrammar = Letters()
    device = Device(model=lambda held: 5 if held[-1] != 5 else second)
    world = World(device, options=SchedulingOptions(max_drafts=4))
    world.arrive([request(1, (9, 9, 9, 9, 9, 9, 9, 9), 50, grammar=grammar)])
    world.run()
    assert world.records[1].finish is finish
    assert world.records[1].tokens == [5, second]


def test_deadlines_end_what_waits_and_what_runs() -> None:
    world = World(limits=LIMITS._replace(max_sequences=1))
    world.arrive(
        [
            request(1, 8, 4000, deadline_s=0.5),
            request(2, 8, 50, first_token_deadline_s=0.2),
            request(3, 8, 10),
        ]
    )
    world.run()
    assert world.records[1].finish is FinishReason.EXPIRED
    assert len(world.records[1].tokens) > 10
    assert (world.records[2].finish, world.records[2].tokens) == (FinishReason.EXPIRED, [])
    assert world.records[3].finish is FinishReason.LENGTH


def test_tenant_without_a_seat_gets_one_of_the_tenant_that_has_most() -> None:
    world = World(limits=LIMITS._replace(max_sequences=8))
    world.arrive([request(key, 8, 4000, tenant="loud") for key in range(1, 17)])
    quiet = [request(key, 8, 20, tenant="quiet", arrived_s=5.0) for key in (101, 102)]
    urgent = request(200, 8, 4000, tenant="urgent", priority=0, arrived_s=0.0)
    world.arrive([urgent, *quiet])
    world.run()
    soon_s = 30 * world.records[1].per_token_s
    assert all(world.records[one.key].first_token_s < soon_s for one in quiet)
    assert all(len(world.records[key].tokens) == 4000 for key in (*range(1, 17), 200))


def test_tenant_with_short_answers_never_waits_for_the_end_of_long_ones() -> None:
    """Long answers are charged as they grow: expected were 128 tokens, and each has 1500."""
    world = World(limits=LIMITS._replace(max_sequences=8, context_tokens=2048))
    world.arrive([request(key, 8, 1500, tenant="loud") for key in range(1, 41)])
    quiet = [request(100 + at, 8, 8, tenant="quiet", arrived_s=0.25 * at) for at in range(1, 160)]
    world.arrive(quiet)
    world.run()
    waited_s = [world.records[one.key].first_token_s for one in quiet]
    assert max(waited_s) < 30 * world.records[1].per_token_s


def test_tenants_with_a_seat_each_keep_them() -> None:
    world = World(limits=LIMITS._replace(max_sequences=4))
    world.arrive([request(key, 8, 400, tenant=f"t{key}") for key in range(1, 9)])
    world.run()
    assert world.scheduler.statistics.preemptions == 0


def test_refusal_names_the_bound_and_when_to_retry() -> None:
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=2))
    for key in range(2):
        scheduler.add(request(key), 0.0)
    with pytest.raises(QueueFullError, match="at most 2 requests may wait") as caught:
        scheduler.add(request(2), 0.0)
    assert 1 <= caught.value.retry_after_s <= 30


def waits(scheduler: Scheduler, one: GenerationRequest) -> str | None:
    """Return why the request may not wait; None: it does."""
    try:
        scheduler.add(one, 0.0)
    except QueueFullError as error:
        return error.message.partition(";")[0]
    return None


def test_bounds_hold_over_both_classes_and_leave_room_for_interactive_requests() -> None:
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=8))
    flood = [request(key, batch_class=True, tenant=f"t{key}") for key in range(8)]
    assert [waits(scheduler, one) for one in flood].count(None) == 4
    others = [request(10 + key, tenant=f"u{key}") for key in range(6)]
    assert [waits(scheduler, one) for one in others].count(None) == 4


def test_waiting_tokens_are_bounded_in_sum_over_classes_and_tenants() -> None:
    options = SchedulingOptions(max_waiting_tokens=4000)
    scheduler = Scheduler(LIMITS, options)
    for key in range(200):
        one = request(key, 100 + key, batch_class=bool(key % 2), tenant=f"t{key % 7}")
        waits(scheduler, one)
        assert scheduler.statistics.waiting_tokens <= options.max_waiting_tokens


def test_tenant_of_many_small_requests_leaves_room_for_another() -> None:
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=9))
    found = [waits(scheduler, request(key, 1, tenant="a")) for key in range(9)]
    assert found.count(None) == 5
    assert found[-1] == "one tenant's waiting requests must be at most the free places"
    assert waits(scheduler, request(100, 1, tenant="b")) is None


@pytest.mark.parametrize("waiting", [0, 1, 3, 5, 8])
@pytest.mark.parametrize("batch_class", [False, True])
def test_choices_are_refused_together_where_one_after_the_other_would_be(
    waiting: int, batch_class: bool
) -> None:
    for count in range(1, 10):
        scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=8))
        for key in range(waiting):
            waits(scheduler, request(key, 1, tenant=f"t{key % 2}"))
        choices = [
            request(100 + key, 1, tenant="t0", batch_class=batch_class) for key in range(count)
        ]
        together: str | None = None
        try:
            scheduler.check_count("t0", count, batch_class=batch_class)
        except QueueFullError as error:
            together = error.message
        assert (together is None) == all(waits(scheduler, one) is None for one in choices)


def test_draft_model_that_is_slow_is_not_asked() -> None:
    cost = known_cost()
    most = [DraftCounts(cost, 1, 100, 8, step_s=step_s).best(0.8) for step_s in (0.0, 0.002, 1.0)]
    assert most[0] > most[1] > most[2] == 0


@pytest.mark.parametrize("deadline_s", [None, 86_400.0])
def test_requests_that_ended_take_no_memory_until_their_deadline(deadline_s: float | None) -> None:
    scheduler = Scheduler(LIMITS)
    for key in range(LIMITS.max_sequences + 1):  # the last one waits before those that follow
        scheduler.add(request(key, max_tokens=500, deadline_s=60.0), 0.0)
    assert scheduler.next_iteration(0.0)
    tracemalloc.start()
    try:
        for key in range(100, 700):
            later_s = 0.001 * key
            one = request(key, 2000, deadline_s=deadline_s, arrived_s=later_s)
            scheduler.add(one, later_s)
            scheduler.cancel(key, later_s)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 256 * 1024  # of one prompt 2000 tokens take 32 KiB
    assert scheduler.expires_s == 60.0


def test_deadlines_that_cannot_be_met_do_not_change_how_others_are_served() -> None:
    def others(impossible_s: float | None) -> list[tuple[bool, list[float]]]:
        world = World(limits=LIMITS._replace(max_sequences=2))
        for number in range(60):  # one at a time: an idle engine accepts all
            now_s = world.now_s
            due_s = None if impossible_s is None else now_s + impossible_s
            world.arrive(
                [request(-1 - number, 8, 2, arrived_s=now_s, first_token_deadline_s=due_s)]
            )
            world.run()
        start_s = world.now_s
        world.arrive(
            [
                request(at, 64, 20, arrived_s=start_s, first_token_deadline_s=start_s + 2.0)
                for at in range(6)
            ]
        )
        world.run()
        records = [world.records[at] for at in range(6)]
        return [(one.refused, [at - start_s for at in one.token_times_s]) for one in records]

    assert others(1e-4) == others(None)
    assert not any(refused for refused, _ in others(1e-4))

"""The queue in front of a third-party engine: admission, order of service, what is handed over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.errors import InvalidRequestError, LateError, QueueFullError, RefusedError
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.third_party.gate import Gate
from headroom_server.generation.third_party.ports import Produced, Step
from headroom_server.generation.values import (
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    SampledToken,
)

LIMITS = GenerationLimits(
    context_tokens=1024,
    vocabulary=100,
    blocks=256,
    block_tokens=16,
    max_sequences=4,
    max_iteration_tokens=64,
)


def ask(key: int, prompt: int = 8, most: int = 16, **more: Any) -> GenerationRequest:
    return GenerationRequest(key=key, prompt=(1,) * prompt, max_tokens=most, **more)


def gate_of(**options: Any) -> Gate:
    return Gate(LIMITS, SchedulingOptions(**options))


def started(gate: Gate) -> list[int]:
    return [request.key for request in gate.next(0.0)]


def token(gate: Gate, key: int, now_s: float = 0.0, finish: FinishReason | None = None) -> object:
    return gate.produced(key, Produced((SampledToken(5),), finish), now_s)


def test_the_engine_gets_its_seats_and_the_rest_waits_here() -> None:
    gate = gate_of()
    for key in range(6):
        gate.add(ask(key, arrived_s=float(key)), 0.0)

    assert started(gate) == [0, 1, 2, 3]
    assert started(gate) == []

    token(gate, 2, finish=FinishReason.STOP)

    assert started(gate) == [4]


def test_long_prompts_wait_here_while_the_engine_has_two_iterations_of_them() -> None:
    gate = gate_of()
    for key in range(4):
        gate.add(ask(key, prompt=100, arrived_s=float(key)), 0.0)

    assert started(gate) == [0, 1]  # 200 tokens; an iteration takes 64

    gate.step(Step(prompt_tokens=64))
    assert started(gate) == []
    gate.step(Step(prompt_tokens=64))
    assert started(gate) == [2]


def test_memory_that_running_answers_will_need_is_not_promised_to_others() -> None:
    gate = Gate(LIMITS._replace(blocks=20), SchedulingOptions())  # 320 tokens
    gate.add(ask(0, prompt=60, most=200), 0.0)
    gate.add(ask(1, prompt=60, most=200), 0.0)

    assert started(gate) == [0]


def test_the_urgent_priority_is_handed_over_first() -> None:
    gate = gate_of()
    for key in range(4):
        gate.add(ask(key), 0.0)
    gate.next(0.0)
    gate.add(ask(10, priority=9), 0.0)
    gate.add(ask(11, priority=0), 0.0)

    token(gate, 0, finish=FinishReason.LENGTH)

    assert started(gate) == [11]


def test_the_tenant_that_received_less_is_handed_over_first() -> None:
    gate = gate_of()
    for key in range(6):
        gate.add(ask(key, tenant="many", arrived_s=float(key)), 0.0)
    gate.next(0.0)
    gate.add(ask(10, tenant="few", arrived_s=10.0), 10.0)

    token(gate, 0, finish=FinishReason.LENGTH)

    assert started(gate) == [10]


def test_tenant_whose_answer_was_short_is_charged_for_what_it_got() -> None:
    """An answer of unknown length is charged as a usual one; it had one token."""
    gate = gate_of()
    gate.add(ask(0, tenant="other", most=500), 0.0)
    gate.add(ask(1, tenant="short", most=500), 0.0)
    gate.add(ask(2, tenant="exact", prompt=60, most=1), 0.0)
    gate.next(0.0)
    for key in (1, 2):
        token(gate, key, finish=FinishReason.STOP)

    gate.add(ask(10, tenant="exact", arrived_s=1.0), 1.0)
    gate.add(ask(11, tenant="short", arrived_s=2.0), 2.0)

    assert started(gate) == [11, 10]


@pytest.mark.parametrize(
    ("first_token_s", "promised"),
    [pytest.param(0.1, True, id="in time"), pytest.param(1.0, False, id="missed")],
)
def test_missed_first_tokens_make_later_promises_more_careful(
    first_token_s: float, promised: bool
) -> None:
    gate = gate_of()
    for count in (16, 32, 64) * 8:  # 1 ms per token of a prompt
        gate.step(Step(prompt_tokens=count, seconds=count / 1000))
    for key in range(3):
        gate.add(ask(key, prompt=16, first_token_deadline_s=0.5), 0.0)
        gate.next(0.0)
        token(gate, key, first_token_s, FinishReason.STOP)
    gate.add(ask(10, prompt=1000, arrived_s=2.0), 2.0)
    gate.next(2.0)

    # predicted to come after between 90 and 95 % of its deadline
    due = ask(11, prompt=100, arrived_s=2.0, first_token_deadline_s=3.4)
    if promised:
        gate.add(due, 2.0)
    else:
        with pytest.raises(LateError):
            gate.add(due, 2.0)


def test_a_promise_waits_for_the_end_of_an_answer_that_the_engine_does_not_interrupt() -> None:
    gate = gate_of()
    for decodes in range(1, 40):
        gate.learn(Step(prompt_tokens=8 * (decodes % 3), decodes=decodes, seconds=0.02))
    for key in range(4):
        gate.add(ask(key, most=500, tenant="many"), 0.0)
    gate.next(0.0)
    for key in range(4):
        token(gate, key)

    with pytest.raises(LateError):  # 128 expected tokens of 20 ms by 4 answers: 0.6 s
        gate.add(ask(10, tenant="few", first_token_deadline_s=0.3), 0.0)
    gate.add(ask(11, tenant="few", first_token_deadline_s=2.0), 0.0)


def test_requests_of_the_batch_class_get_only_what_interactive_ones_leave() -> None:
    gate = gate_of()
    gate.add(ask(0, batch_class=True), 0.0)
    gate.add(ask(1, arrived_s=5.0), 5.0)

    assert started(gate) == [1, 0]


def test_a_request_that_cannot_be_in_time_is_refused_at_once() -> None:
    gate = gate_of()
    for count in (16, 32, 64) * 8:  # 1 ms per token of a prompt
        gate.step(Step(prompt_tokens=count, seconds=count / 1000))
    gate.add(ask(0, prompt=1000), 0.0)
    gate.next(0.0)

    with pytest.raises(QueueFullError, match="deadline"):
        gate.add(ask(1, prompt=100, first_token_deadline_s=0.5), 0.0)
    gate.add(ask(2, prompt=100, first_token_deadline_s=20.0), 0.0)


def test_a_request_with_a_deadline_is_accepted_while_decodes_seem_to_take_no_time() -> None:
    gate = gate_of(time_per_token_s=0.02)
    for count in (16, 32, 64) * 8:  # less than proportional: the constant is left out
        gate.step(Step(prompt_tokens=count, seconds=count**2 / 1e5))
    gate.add(ask(0), 0.0)
    gate.next(0.0)
    gate.add(ask(1, first_token_deadline_s=20.0), 0.0)
    assert started(gate) == [1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        pytest.param(ask(1, prompt=1000, most=100), "at most 1024", id="too long"),
        pytest.param(ask(1, most=0), "at least 1", id="no answer"),
    ],
)
def test_a_request_that_no_load_admits_is_invalid(wrong: GenerationRequest, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        gate_of().add(wrong, 0.0)


def test_a_draining_gate_refuses_and_continues_what_it_accepted() -> None:
    gate = gate_of()
    gate.add(ask(0), 0.0)
    gate.drain()

    with pytest.raises(RefusedError, match="stopping"):
        gate.add(ask(1), 0.0)
    assert started(gate) == [0]


def test_a_deadline_that_passes_ends_the_request_once() -> None:
    gate = gate_of()
    gate.add(ask(0, deadline_s=1.0), 0.0)
    gate.next(0.0)
    token(gate, 0, now_s=0.5)

    assert gate.expires_s == 1.0
    assert [one.finish for one in gate.expire(1.5)] == [FinishReason.EXPIRED]
    assert token(gate, 0, now_s=1.6) is None
    assert gate.expire(2.0) == []


def test_what_the_engine_says_of_a_request_that_left_is_ignored() -> None:
    gate = gate_of()
    gate.add(ask(0), 0.0)
    gate.add(ask(1), 0.0)
    gate.next(0.0)

    assert gate.cancel(0)
    assert not gate.cancel(0)
    assert token(gate, 0) is None
    assert gate.failed(0, "why") is None


def test_iterations_teach_the_cost_with_the_prompts_in_the_order_of_the_engine() -> None:
    gate = gate_of()
    gate.add(ask(0, prompt=100, arrived_s=0.0), 0.0)
    gate.add(ask(1, prompt=20, arrived_s=1.0), 0.0)
    gate.next(0.0)

    gate.step(Step(prompt_tokens=64, seconds=0.1))
    gate.step(Step(prompt_tokens=56, seconds=0.1))

    # 64 x 32, then 36 x (64 + 18) and 20 x 10
    assert gate.state.sums.xx[4] == 64 * 32 + 36 * 82 + 20 * 10
    assert [one.remaining for one in gate.state.prefilling] == [0, 0]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("add", "next", "token", "end", "cancel", "fail", "expire", "step")),
        st.integers(0, 11),
    ),
    max_size=120,
)


@given(EVENTS)
def test_every_accepted_request_ends_once_and_nothing_is_left(events: list[Any]) -> None:
    gate, now_s, ended, accepted, running = gate_of(), 0.0, [], set(), set()
    for what, key in events:
        now_s += 0.1
        if what == "add" and key not in accepted:
            gate.add(ask(key, prompt=1 + 7 * key, deadline_s=now_s + 1.0 + key), now_s)
            accepted.add(key)
        elif what == "next":
            running |= set(started(gate))
            assert gate.state.running <= LIMITS.max_sequences
        elif what == "step":
            gate.step(Step(prompt_tokens=20 * key, seconds=0.01))
        elif what in ("token", "end") and key in running:
            finish = FinishReason.STOP if what == "end" else None
            delivery = gate.produced(key, Produced((SampledToken(5),), finish), now_s)
            ended += [key] * (delivery is not None and delivery.finish is not None)
        elif what == "fail":
            ended += [key] * (gate.failed(key, "why") is not None)
        elif what == "cancel" and key in gate.state.live:
            gate.cancel(key)
            ended.append(key)
        elif what == "expire":
            ended += [one.key for one in gate.expire(now_s)]
    ended += [one.key for one in gate.end_all(FinishReason.SHUTDOWN)]

    assert sorted(ended) == sorted(accepted)
    state = gate.state
    assert (state.running, state.context_tokens, gate.engine_load.tokens) == (0, 0, 0)
    assert (state.interactive.count, state.interactive.tokens) == (0, 0)

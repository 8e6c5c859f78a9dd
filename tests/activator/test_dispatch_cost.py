"""Cost of held requests that cannot be sent on: the requests of others pay nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from activator.buffers import A, of
from headroom.activator.held_request import Bounds, HeldRequest
from headroom.activator.request_buffer import RequestBuffer
from headroom.activator.waiting_line import SPARE, WaitingLine

OTHERS, STRANGER = "hostile/a", "vision/bert"


def held_by(buffer: RequestBuffer, key: str, count: int) -> list[HeldRequest]:
    found = [buffer.admit(key, 0.0, None) for _ in range(count)]
    return [one for one in found if isinstance(one, HeldRequest)]


def unfinished(buffer: RequestBuffer) -> None:
    buffer.serve([of(A, key=OTHERS), of(A, key=STRANGER)])
    assert len(held_by(buffer, OTHERS, 2048)) == 2048


def refused_by_their_replica(buffer: RequestBuffer) -> None:
    unfinished(buffer)
    for held in held_by(buffer, OTHERS, 2048):
        buffer.complete(held)
    for held, _ in buffer.dispatch(0.0).given:
        buffer.put_back(held, 0.0)


def each_of_its_own_service(buffer: RequestBuffer) -> None:
    keys = [f"hostile/{number}" for number in range(2000)]
    buffer.serve([*(of(key=key) for key in keys), of(A, key=STRANGER)])
    for key in keys:
        for held in held_by(buffer, key, 1):
            buffer.complete(held)


@pytest.mark.parametrize("others", [unfinished, refused_by_their_replica, each_of_its_own_service])
def test_request_is_dispatched_as_fast_as_without_the_held_ones_of_others(
    others: Callable[[RequestBuffer], None],
) -> None:
    """Bodies that never end took 4.8 ms of each request's two dispatches: 2048 were looked at."""
    buffer = RequestBuffer(Bounds())
    others(buffer)

    def took_s() -> float:
        begun_s = time.process_time()
        for _ in range(20):
            (held,) = held_by(buffer, STRANGER, 1)
            buffer.complete(held)
            assert buffer.dispatch(0.05, STRANGER).given == ((held, A),)
            buffer.done(held)
            buffer.dispatch(0.05, OTHERS)
        return (time.process_time() - begun_s) / 20

    assert min(took_s() for _ in range(5)) < 0.0005


def test_line_gives_the_oldest_due_request_and_keeps_no_entry_of_those_that_left() -> None:
    """Against a list that is looked through, over 4000 random events."""
    seeded = random.Random(1)
    line, waiting, away = WaitingLine(), list[HeldRequest](), list[HeldRequest]()
    for number in range(4000):
        now_s = number / 100
        event = seeded.randrange(4)
        if event == 0 or not waiting:
            held = HeldRequest(key=OTHERS, number=number, arrived_s=now_s, until_s=now_s + 9.0)
            held.not_before_s = now_s + seeded.choice([0.0, 0.5, 100.0])
            waiting.append(held)
            line.add(held)
            line.may_go(held)
        elif event == 1:
            line.remove(held := waiting.pop(seeded.randrange(len(waiting))))
            away.append(held)
        elif event == 2 and away:
            waiting.append(held := away.pop())
            held.not_before_s = now_s + 0.1
            line.add(held)
            line.may_go(held)
        due = [one.number for one in waiting if one.not_before_s <= now_s]
        first = line.first(now_s)
        assert (None if first is None else first.number) == min(due, default=None)
        ended = {one.number for one in waiting if one.until_s <= now_s}
        assert {one.number for one in line.ended(now_s)} == ended
        waiting = [one for one in waiting if one.number not in ended]
        assert len(line) == len(waiting)
    for held in waiting:
        line.remove(held)
    for heap in (line._by_end, line._by_start, line._due):
        assert len(heap) <= SPARE

"""The open and the closed loop, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Protocol

import pytest

from load.generator import Generator, Limits
from load.messages import Message, Progress, Summary, Window
from load.outcomes import Ending, FirstTry, Outcome
from load.users import Users


class Server:
    """Answers after a while, and remembers when it was asked."""

    connections = 3

    def __init__(self, answer_s: float, endings: dict[int, Ending] | None = None) -> None:
        self._answer_s, self._endings = answer_s, endings or {}
        self.asked_s: list[float] = []
        self.in_flight = self.most_in_flight = 0

    async def ask(self, number: int) -> Ending:
        self.asked_s.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self._answer_s)
        self.in_flight -= 1
        return self._endings.get(number, Ending(Outcome.OK))


class Replay(Protocol):
    def __call__(
        self,
        server: Server,
        load: list[float] | Users,
        *,
        max_in_flight: int = 100,
        stop_after_s: float = 1e9,
    ) -> tuple[Summary, list[Message]]: ...


@pytest.fixture
def replay(virtual_time: asyncio.Runner) -> Replay:
    def replay(
        server: Server,
        load: list[float] | Users,
        *,
        max_in_flight: int = 100,
        stop_after_s: float = 1e9,
    ) -> tuple[Summary, list[Message]]:
        said: list[Message] = []
        limits = Limits(target_s=1.0, window_s=10.0, max_in_flight=max_in_flight)

        async def run() -> Summary:
            generator = Generator(server, load, limits, said.append)
            asyncio.get_running_loop().call_later(stop_after_s, generator.stop)
            return await generator.run()

        return virtual_time.run(run()), said

    return replay


def test_every_request_is_sent_at_its_instant_whatever_the_answers_do(replay: Replay) -> None:
    server = Server(answer_s=500.0)
    arrivals_s = [0.0, 0.25, 0.25, 7.0, 30.0]
    summary, _ = replay(server, arrivals_s)
    assert server.asked_s == pytest.approx(arrivals_s)
    assert server.most_in_flight == 5
    assert summary.requests == summary.tally.requests == 5


def test_latency_runs_from_the_intended_instant(replay: Replay) -> None:
    summary, _ = replay(Server(answer_s=0.9), [i * 0.1 for i in range(50)])
    assert summary.tally.within == 50
    assert summary.tally.quantile_s(1.0) == pytest.approx(0.9, rel=0.02)
    assert summary.late_p99_s < 0.002


def test_requests_above_the_bound_in_flight_are_misses_and_not_sent(replay: Replay) -> None:
    server = Server(answer_s=5.0)
    summary, _ = replay(server, [i * 0.1 for i in range(20)], max_in_flight=4)
    assert server.most_in_flight == 4
    assert summary.tally.outcomes == {Outcome.OK: 4, Outcome.UNSENT: 16}
    assert summary.tally.requests == summary.requests == 20


def test_every_outcome_is_counted_in_the_window_in_which_it_was_due(replay: Replay) -> None:
    endings = {
        1: Ending(Outcome.REFUSED, "status 429"),
        2: Ending(Outcome.LOST, "reset", retried=True),
    }
    summary, said = replay(Server(0.5, endings), [1.0, 2.0, 19.9])
    windows = [message for message in said if isinstance(message, Window)]
    assert [(w.start_s, dict(w.tally.outcomes)) for w in windows] == [
        (0.0, {Outcome.OK: 1, Outcome.REFUSED: 1}),
        (10.0, {Outcome.LOST: 1}),
    ]
    assert summary.retried == 1
    assert summary.connections == 3
    assert dict(summary.failures) == {"refused: status 429": 1, "lost: reset": 1}
    assert said[-1] == summary


def test_progress_is_written_every_second(replay: Replay) -> None:
    _, said = replay(Server(0.5, {0: Ending(Outcome.LOST)}), [0.1, 1.1, 2.6])
    progress = [message for message in said if isinstance(message, Progress)]
    assert [(p.at_s, p.due, p.in_flight, dict(p.tally.outcomes)) for p in progress] == [
        (1.0, 1, 0, {Outcome.LOST: 1}),
        (2.0, 2, 0, {Outcome.OK: 1}),
        (3.0, 3, 1, {}),
    ]


def test_stopping_sends_no_more_and_waits_for_what_is_in_flight(replay: Replay) -> None:
    server = Server(answer_s=2.0)
    summary, _ = replay(server, [0.0, 1.0, 5.0], stop_after_s=1.5)
    assert summary.interrupted
    assert summary.requests == 2
    assert summary.tally.outcomes == {Outcome.OK: 2}
    assert server.in_flight == 0


def test_users_wait_for_their_answers_and_think_in_between(replay: Replay) -> None:
    server = Server(answer_s=3.0)
    users = Users(count=20, think_s=2.0, duration_s=1000.0)
    summary, _ = replay(server, users)
    assert server.most_in_flight <= 20
    # Each user asks every 3 + 2 s: 4000 requests, give or take three standard deviations.
    assert summary.requests == pytest.approx(20 * 1000.0 / 5.0, abs=3 * 63)
    assert summary.tally.quantile_s(1.0) == pytest.approx(3.0, rel=0.02)
    assert max(server.asked_s) < 1000.0


def test_a_slower_server_is_asked_less_by_the_same_users(replay: Replay) -> None:
    users = Users(count=10, think_s=1.0, duration_s=500.0)
    quick, _ = replay(Server(answer_s=1.0), users)
    slow, _ = replay(Server(answer_s=9.0), users)
    assert quick.requests / slow.requests == pytest.approx(5.0, rel=0.1)


def test_users_end_when_stopped(replay: Replay) -> None:
    users = Users(count=3, think_s=1.0, duration_s=500.0)
    summary, said = replay(Server(answer_s=0.5), users, stop_after_s=20.0)
    assert summary.interrupted
    assert 0 < summary.requests == summary.tally.requests < 100
    assert said[-1] == summary


@pytest.mark.parametrize(
    ("count", "think_s", "duration_s", "message"),
    [
        (0, 1.0, 10.0, "users must be at least 1; got 0"),
        (1, 0.0, 10.0, "mean pause must be above 0 s; got 0"),
        (1, 1.0, 0.0, "duration must be above 0 s; got 0"),
    ],
)
def test_impossible_users_are_refused(
    count: int, think_s: float, duration_s: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Users(count=count, think_s=think_s, duration_s=duration_s)


def test_first_tries_and_all_tries_are_counted_next_to_the_outcome(replay: Replay) -> None:
    endings = {
        0: Ending(Outcome.OK, tries=3, first=FirstTry(Outcome.LOST, 2.0)),
        1: Ending(Outcome.OK, tries=1, first=FirstTry(Outcome.OK, 0.5)),
        2: Ending(Outcome.REFUSED, tries=2, first=FirstTry(Outcome.REFUSED, 0.1)),
    }
    summary, _ = replay(Server(0.5, endings), [0.0, 1.0, 2.0, 3.0])
    assert summary.tally.outcomes == {Outcome.OK: 3, Outcome.REFUSED: 1}
    assert summary.first.outcomes == {Outcome.OK: 2, Outcome.LOST: 1, Outcome.REFUSED: 1}
    assert summary.first.within == 2
    assert summary.tries == 3 + 1 + 2 + 1


def test_waiting_for_a_connection_is_part_of_the_latency(replay: Replay) -> None:
    class OneConnection(Server):
        def __init__(self) -> None:
            super().__init__(answer_s=1.0)
            self._free = asyncio.Semaphore(1)

        async def ask(self, number: int) -> Ending:
            async with self._free:
                return await super().ask(number)

    summary, _ = replay(OneConnection(), [0.0, 0.0, 0.0])
    assert summary.tally.within == 1
    assert summary.tally.quantile_s(1.0) == pytest.approx(3.0, rel=0.02)

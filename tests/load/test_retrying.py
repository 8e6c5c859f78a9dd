"""Patience, retries and backoff, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from load.outcomes import Ending, FirstTry, Outcome
from load.retrying import LONGEST_PAUSE_S, Retries, Retrying

OK, FULL, SILENT = Ending(Outcome.OK), Ending(Outcome.REFUSED, "status 429"), None


class Server:
    """Ends each try as configured, half a second after it began; None: never answers."""

    connections = 0

    def __init__(self, endings: Sequence[Ending | None]) -> None:
        self._endings = endings
        self.begun_s: list[float] = []
        self.earlier: list[int] = []

    async def attempt(self, number: int, earlier: int) -> Ending:
        assert number == 7
        self.begun_s.append(asyncio.get_running_loop().time())
        self.earlier.append(earlier)
        ending = self._endings[len(self.begun_s) - 1]
        await asyncio.sleep(0.5 if ending else 1000.0)
        assert ending is not None
        return ending


@pytest.mark.parametrize(
    ("endings", "most", "outcome", "tries"),
    [
        ([OK], 3, Outcome.OK, 1),
        ([FULL, OK], 3, Outcome.OK, 2),
        ([SILENT, FULL, OK], 2, Outcome.OK, 3),
        ([FULL, FULL, FULL], 2, Outcome.REFUSED, 3),
        ([SILENT, SILENT], 1, Outcome.LOST, 2),
        ([FULL], 0, Outcome.REFUSED, 1),
        ([Ending(Outcome.WRONG)], 3, Outcome.WRONG, 1),
    ],
)
def test_a_request_is_tried_until_it_is_answered_or_no_retry_is_left(
    virtual_time: asyncio.Runner,
    endings: Sequence[Ending | None],
    most: int,
    outcome: Outcome,
    tries: int,
) -> None:
    server = Server(endings)
    asker = Retrying(server, Retries(most=most, patience_s=2.0))
    ending = virtual_time.run(asker.ask(7))
    assert (ending.outcome, ending.tries) == (outcome, tries)
    assert server.earlier == list(range(tries))


def test_the_first_try_is_reported_next_to_the_outcome(virtual_time: asyncio.Runner) -> None:
    asker = Retrying(Server([SILENT, OK]), Retries(most=1, backoff_s=1.0, patience_s=2.0))
    ending = virtual_time.run(asker.ask(7))
    assert ending.outcome is Outcome.OK
    assert ending.first == FirstTry(Outcome.LOST, 2.0)


def test_pauses_double_from_the_backoff_less_a_little_chance(virtual_time: asyncio.Runner) -> None:
    server = Server([FULL] * 4)
    virtual_time.run(Retrying(server, Retries(most=3, backoff_s=1.0)).ask(7))
    pauses = [
        later - earlier - 0.5
        for earlier, later in zip(server.begun_s, server.begun_s[1:], strict=False)
    ]
    for pause, whole in zip(pauses, [1.0, 2.0, 4.0], strict=True):
        assert 0.75 * whole <= pause <= whole
    assert Retries(backoff_s=1.0).pause_s(30, random.Random(1)) <= LONGEST_PAUSE_S


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"most": -1}, "retries must be 0 or more; got -1"),
        ({"backoff_s": -0.5}, "backoff must be 0 s or more; got -0.5"),
        ({"patience_s": 0.0}, "patience must be above 0 s; got 0"),
    ],
)
def test_impossible_retries_are_refused(words: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Retries(**words)  # type: ignore[arg-type]

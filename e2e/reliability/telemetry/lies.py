"""Pages that are well-formed and wrong, as broken or hostile servers write them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from reliability.telemetry.figures import BOUNDS, NUMBERS, Figures

_RECEIVED, _OK, _WAITING, _RUNNING, _LARGEST, _FIXED, _ITEM, _BATCHES, _SECONDS, _ITEMS = NUMBERS
COUNTERS = (_RECEIVED, _OK, _BATCHES, _SECONDS, _ITEMS)


class Lie(StrEnum):
    """Falsehood in the figures of a page."""

    ABSURD = "one number that no server can have"
    LARGE = "one number a thousand to a billion times as large"
    SMALL = "one number a thousandth or less, or zero"
    LARGER_BATCHES = "every batch 100 times as large, with the largest"
    LARGER_WITHIN = "batches as large as they may be, in the same time"
    MORE_BATCHES = "100 to 10^9 times as many batches and items, in the same time"
    FASTER = "executions in ms instead of s: a thousandth of the time"
    SLOWER = "executions a thousand times as long"
    CHEAP = "a reported cost of a thousandth"
    COSTLY = "a reported cost of a thousand times"
    FEWER = "every counter a hundredth to a half"
    MORE = "every counter 10 to 10 000 times as large"
    FROZEN = "the page of an earlier scrape, again and again, as if it were new"
    BACK = "counters that go back and forth"
    OTHER_SERVER = "the counters of another process of another load"
    COPIED = "the page of another replica"
    SUMMED_TWICE = "one series twice, under another label"
    SWAPPED = "two numbers swapped"
    INSTANT = "all requests in the fastest bucket"
    LATE = "all requests in the slowest bucket"
    FAILED = "every request failed, and a thousand more"
    QUEUED = "a queue of 100 000"


Change = Callable[[Figures, random.Random], None]


def tell(
    lie: Lie,
    true: Figures,
    earlier: Figures,
    other: Figures,
    episode: int,
    chance: random.Random,
) -> str:
    """Return the page with this lie.

    `earlier` is the server's last true page, `other` that of another replica.
    `episode` is drawn once for all pages of an episode, so that they agree with each other.
    """
    drawn = random.Random(f"{lie} {episode}")
    if lie is Lie.FROZEN:
        return earlier.text()
    if lie is Lie.COPIED:
        return other.text()
    reported = replace(true, numbers=dict(true.numbers), buckets=list(true.buckets))
    if lie is Lie.BACK:
        _scale(reported, chance.choice((0.5, 0.9, 1.0)))
    elif lie is Lie.SUMMED_TWICE:
        text = reported.text()
        return text + drawn.choice(text.splitlines()).replace("{", '{replica="other",', 1) + "\n"
    else:
        _CHANGES[lie](reported, drawn)
    return reported.text()


def _scale(reported: Figures, factor: float, names: tuple[str, ...] = COUNTERS) -> None:
    for name in names:
        value = reported.numbers[name] * factor
        reported.numbers[name] = value if name == _SECONDS else float(int(value))
    if names is COUNTERS:
        reported.buckets = [float(int(count * factor)) for count in reported.buckets]


def _absurd(reported: Figures, drawn: random.Random) -> None:
    name = drawn.choice(NUMBERS)
    reported.numbers[name] = drawn.choice((1e18, 1e155, 1e160, 1e300, 1.7e308))


def _large(reported: Figures, drawn: random.Random) -> None:
    name, factor = drawn.choice(NUMBERS), drawn.choice((1e3, 1e6, 1e9))
    reported.numbers[name] = float(int((reported.numbers[name] + 1.0) * factor))


def _small(reported: Figures, drawn: random.Random) -> None:
    name, factor = drawn.choice(NUMBERS), drawn.choice((0.0, 1e-9, 1e-3))
    reported.numbers[name] *= factor


def _larger_batches(reported: Figures, drawn: random.Random) -> None:
    _scale(reported, 100.0, (_ITEMS, _LARGEST))


def _larger_within(reported: Figures, drawn: random.Random) -> None:
    _scale(reported, reported.numbers[_LARGEST], (_ITEMS,))


def _more_batches(reported: Figures, drawn: random.Random) -> None:
    _scale(reported, drawn.choice((1e2, 1e4, 1e6, 1e9)), (_ITEMS, _BATCHES))


def _other_server(reported: Figures, drawn: random.Random) -> None:
    other = Figures.of(drawn.choice((0, 7, 10**4, 10**7)))
    reported.numbers, reported.buckets = other.numbers, other.buckets


def _swapped(reported: Figures, drawn: random.Random) -> None:
    one, other = drawn.sample(NUMBERS, k=2)
    reported.numbers[one], reported.numbers[other] = reported.numbers[other], reported.numbers[one]


def _instant(reported: Figures, drawn: random.Random) -> None:
    reported.buckets = [reported.buckets[-1]] * len(BOUNDS)


def _late(reported: Figures, drawn: random.Random) -> None:
    reported.buckets = [0.0] * (len(BOUNDS) - 1) + [reported.buckets[-1]]


def _failed(reported: Figures, drawn: random.Random) -> None:
    reported.failed = reported.numbers[_OK] + 1000.0
    reported.numbers[_OK] = 0.0
    reported.buckets = [0.0] * len(BOUNDS)


def _queued(reported: Figures, drawn: random.Random) -> None:
    reported.numbers[_WAITING] = 1e5


_CHANGES: Mapping[Lie, Change] = {
    Lie.ABSURD: _absurd,
    Lie.LARGE: _large,
    Lie.SMALL: _small,
    Lie.LARGER_BATCHES: _larger_batches,
    Lie.LARGER_WITHIN: _larger_within,
    Lie.MORE_BATCHES: _more_batches,
    Lie.FASTER: lambda reported, _: _scale(reported, 1e-3, (_SECONDS,)),
    Lie.SLOWER: lambda reported, _: _scale(reported, 1e3, (_SECONDS,)),
    Lie.CHEAP: lambda reported, _: reported.numbers.update({_FIXED: 0.00015, _ITEM: 0.00006}),
    Lie.COSTLY: lambda reported, _: reported.numbers.update({_FIXED: 150.0, _ITEM: 60.0}),
    Lie.FEWER: lambda reported, drawn: _scale(reported, drawn.choice((0.01, 0.1, 0.5))),
    Lie.MORE: lambda reported, drawn: _scale(reported, drawn.choice((1e1, 1e2, 1e4))),
    Lie.OTHER_SERVER: _other_server,
    Lie.SWAPPED: _swapped,
    Lie.INSTANT: _instant,
    Lie.LATE: _late,
    Lie.FAILED: _failed,
    Lie.QUEUED: _queued,
}

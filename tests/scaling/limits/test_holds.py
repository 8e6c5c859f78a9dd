"""Duration of each hold: cold starts, flaps, and replicas for a queue."""

from __future__ import annotations

import pytest

from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.scale_down import limit_decrease
from scaling.limits.limit_inputs import NOW_S, limit_input


@pytest.mark.parametrize(
    ("starts_s", "needed", "watched_s", "replicas"),
    [
        ((10.0,), ((940.0, 6), (950.0, 4)), 1e6, 6),  # the hold alone: 60 s
        ((10.0,), ((939.0, 6), (950.0, 4)), 1e6, 4),
        ((), ((820.0, 6), (950.0, 4)), 1e6, 6),  # no start was measured: three times the hold
        ((), ((819.0, 6), (950.0, 4)), 1e6, 4),
        ((20.0,), ((939.0, 6), (950.0, 4)), 1e6, 4),  # shorter than the hold
        ((120.0,), ((880.0, 6), (950.0, 4)), 1e6, 6),  # what is back after 120 s is kept for 120 s
        ((120.0,), ((879.0, 6), (950.0, 4)), 1e6, 4),
        ((120.0,), ((950.0, 4),), 119.0, 6),  # not watched for as long
        ((120.0,), ((950.0, 4),), 120.0, 4),
    ],
)
def test_hold_is_at_least_a_cold_start(
    starts_s: tuple[float, ...],
    needed: tuple[tuple[float, int], ...],
    watched_s: float,
    replicas: int,
) -> None:
    state = {"cold_starts": ColdStarts(seconds=starts_s)}
    found = limit_input(3, 6, needed=needed, watched_s=watched_s, state=state)
    assert limit_decrease(found)[0] == replicas


FLAPPED = Flaps(recent=((900.0, 5),))
"""Up to five are kept four times as long."""


@pytest.mark.parametrize(
    ("needed", "replicas"),
    [
        (((759.0, 6), (760.0, 5), (990.0, 3)), 5),  # 240 s ago: it is the beginning of the hold
        (((759.0, 6), (761.0, 4), (990.0, 3)), 4),
        (((900.0, 6), (940.0, 3)), 5),  # no more than flapped
        ((), 6),
    ],
)
def test_flap_level_is_kept_for_four_times_the_hold(
    needed: tuple[tuple[float, int], ...], replicas: int
) -> None:
    found = limit_input(3, 6, needed=needed, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == replicas


def test_what_a_queue_needed_is_kept_for_the_usual_hold_only() -> None:
    """It was worked off once; what arrivals needed may come back."""
    queued, arrivals = ((800.0, 6), (990.0, 3)), ((800.0, 4), (990.0, 3))
    found = limit_input(3, 6, needed=queued, arrivals=arrivals, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == 4
    found = limit_input(3, 6, needed=((950.0, 6),), arrivals=arrivals, state={"flaps": FLAPPED})
    assert limit_decrease(found)[0] == 6


@pytest.mark.parametrize(
    ("needed", "replicas"),
    [
        (((700.0, 6), (990.0, 1)), 3),  # 300 s ago: only three flapped twice
        (((770.0, 6), (990.0, 1)), 5),
        (((30.0, 6), (990.0, 1)), 1),
        (((770.0, 4), (990.0, 1)), 4),
    ],
)
def test_replica_is_kept_for_the_flaps_that_it_took_part_in(
    needed: tuple[tuple[float, int], ...], replicas: int
) -> None:
    flaps = Flaps(recent=((500.0, 3), (900.0, 5)))
    found = limit_input(1, 6, needed=needed, watched_s=990.0, state={"flaps": flaps})
    assert limit_decrease(found)[0] == replicas


@pytest.mark.parametrize(
    ("flaps", "kept"),
    [(3, 3), (4, 5), (6, 5)],
    ids=["three flaps: a queue is worked off", "four flaps: it comes again", "six flaps"],
)
def test_what_a_queue_needed_four_times_in_an_hour_is_kept(flaps: int, kept: int) -> None:
    recent = tuple((NOW_S - 100.0 * (number + 1), 5) for number in range(flaps))[::-1]
    arrivals = ((990.0, 3),)
    found = limit_input(
        3, 6, needed=((990.0, 3),), arrivals=arrivals, state={"flaps": Flaps(recent=recent)}
    )
    assert limit_decrease(found)[0] == kept

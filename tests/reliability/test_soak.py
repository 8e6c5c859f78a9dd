"""The short form of the soak, and the sums that it is judged by."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from reliability.soak import chaos, soak_results
from reliability.soak.__main__ import soak
from reliability.soak.part import calls_per_service_hour


@pytest.fixture
def only_new_objects() -> Iterator[None]:
    """The soak collects garbage often: leave out what other tests of this process keep."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("only_new_objects")
def test_short_soak_with_faults_passes() -> None:
    found = soak(hours=0.1, seed=3, services=1)
    assert found.wrongs == []
    assert found.kills >= 3
    assert found.troubles >= 1
    assert found.grown("tasks") <= 0.0
    assert found.calls_per_service_hour <= 1.2 * calls_per_service_hour(1)  # it has just begun


def test_the_same_seed_gives_the_same_chaos() -> None:
    drawn = list(chaos.episodes(5, 86_400.0, 3))
    assert drawn == list(chaos.episodes(5, 86_400.0, 3))
    assert drawn != list(chaos.episodes(6, 86_400.0, 3))
    assert {one.trouble for one in drawn} == set(chaos.Trouble)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10, 20, 20, 20, 20, 21, 22, 22], 0.1),
        ([50, 40, 40, 40, 40, 40, 40, 40], 0.0),
        ([7.0], 0.0),
    ],
)
def test_growth_is_the_last_quarter_over_the_second(values: list[float], expected: float) -> None:
    assert soak_results.growth(values) == pytest.approx(expected)

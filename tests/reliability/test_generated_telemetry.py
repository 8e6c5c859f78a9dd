"""Generated telemetry through text, samples and decision; `make reliability` plays 500 000."""

from __future__ import annotations

import random

import pytest

from headroom.telemetry import headroom_page
from headroom.telemetry.errors import TelemetryError
from reliability.telemetry.figures import MODEL
from reliability.telemetry.page_faults import TELLS_NOTHING, Fault, page, spoilt
from reliability.telemetry.sequences import Pages
from reliability.telemetry.telemetry_tree import run
from reliability.telemetry.trials import draw

TREES = 8


def test_no_removal_follows_from_what_is_missing_and_bounds_hold() -> None:
    outcome = run(range(TREES))
    assert outcome.wrongs == []
    assert outcome.sequences > 100
    assert outcome.removals > 0, "where fewer are needed and all speak, one is removed"
    assert len(outcome.faults) >= 10


@pytest.mark.parametrize(
    "tree",
    [
        *(211, 475, 3761, 3997, 6097, 7189, 8633, 9375, 20639, 30571),
        *(101211, 304153, 306823, 308139, 310047, 310081, 312545),
    ],
)
def test_trees_in_which_one_replica_once_misled_the_decision_hold(tree: int) -> None:
    assert run([tree]).wrongs == []


def test_a_trial_is_the_same_each_time() -> None:
    trial = draw(7)
    assert draw(7) == trial
    one, other = Pages(trial), Pages(trial)
    assert [one.next() for _ in range(20)] == [other.next() for _ in range(20)]
    assert draw(8) != trial


def test_branches_share_the_past_and_nothing_later() -> None:
    pages = Pages(draw(7))
    pages.next()
    one, other, same = pages.branch("0"), pages.branch("1"), pages.branch("0")
    course = [one.next() for _ in range(20)]
    assert [same.next() for _ in range(20)] == course
    assert [other.next() for _ in range(20)] != course


@pytest.mark.parametrize("fault", sorted(TELLS_NOTHING))
def test_a_page_with_this_fault_is_no_sample(fault: Fault) -> None:
    for number in range(30):
        text = spoilt(page(1000), fault, random.Random(number))
        if text is None:
            assert fault is Fault.MISSING
            continue
        with pytest.raises(TelemetryError):
            headroom_page.read_sample(text, pod="p", model=MODEL, time_s=0.0)


@pytest.mark.parametrize("fault", sorted(set(Fault) - TELLS_NOTHING - {Fault.STALE}))
def test_a_page_with_this_fault_is_a_sample_of_the_own_model(fault: Fault) -> None:
    text = spoilt(page(1000), fault, random.Random(1))
    assert text is not None
    sample = headroom_page.read_sample(text, pod="p", model=MODEL, time_s=0.0)
    assert sample.arrivals == (10**15 if fault is Fault.INFLATED else 1000)

"""The election's algorithm: tables of one candidate, and two under everything that can go wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.controller.leadership.candidate import Candidate, LeaseTimes
from headroom.controller.leadership.record import LeaseRecord, micro_time

OTHERS = LeaseRecord(
    holder="b", duration_s=12.0, transitions=4, acquired="t1", renewed="t2", version="7"
)


def follower(seen: LeaseRecord | None = OTHERS, at_s: float = 100.0) -> Candidate:
    return Candidate(identity="a").with_record(seen, at_s)


def leader(asked_s: float = 100.0, now_s: float = 100.5) -> Candidate:
    begun = follower(None, asked_s)
    claimed = begun.claim(asked_s, "t0")
    assert claimed is not None
    return begun.with_written(replace(claimed, version="1"), asked_s, now_s)


@pytest.mark.parametrize(
    ("seen", "now_s", "takes"),
    [
        pytest.param(None, 100.0, True, id="there is no lease"),
        pytest.param(replace(OTHERS, holder=""), 100.0, True, id="it was released"),
        pytest.param(OTHERS, 111.9, False, id="it runs"),
        pytest.param(OTHERS, 112.0, True, id="it ran out, by our clock since we saw it change"),
        pytest.param(replace(OTHERS, duration_s=60.0), 112.0, False, id="its holder said longer"),
        pytest.param(replace(OTHERS, holder="a"), 100.0, True, id="it is ours"),
    ],
)
def test_a_lease_is_taken_when_no_other_holder_is_valid(
    seen: LeaseRecord | None, now_s: float, takes: bool
) -> None:
    assert (follower(seen).claim(now_s, "t3") is not None) is takes


def test_a_take_over_counts_as_a_transition_and_a_renewal_does_not() -> None:
    taken = follower().claim(112.0, "t3")
    assert taken == replace(OTHERS, holder="a", transitions=5, acquired="t3", renewed="t3")
    renewed = leader().claim(102.0, "t9")
    assert renewed is not None
    assert (renewed.transitions, renewed.acquired, renewed.renewed) == (0, "t0", "t9")
    assert renewed.version == "1", "a compare-and-swap on what was stored"


def test_a_renewal_by_the_other_restarts_the_wait_and_an_unchanged_record_does_not() -> None:
    waited = follower().with_record(replace(OTHERS, version="8"), 105.0)
    assert waited.claim(112.0, "t") is not None, "a label was changed, and nothing renewed"
    renewed = follower().with_record(replace(OTHERS, renewed="t3"), 105.0)
    assert renewed.claim(116.9, "t") is None
    assert renewed.claim(117.0, "t") is not None


@pytest.mark.parametrize(
    ("now_s", "left_s"),
    [(100.5, 7.5), (107.0, 1.0), (108.0, 0.0), (500.0, 0.0), (99.0, 0.0)],
    ids=["counted from before it was asked", "less and less", "over", "asleep", "clock went back"],
)
def test_a_leader_may_write_until_its_renewal_is_too_old(now_s: float, left_s: float) -> None:
    assert leader().remaining_s(now_s) == pytest.approx(left_s)


def test_candidate_that_sees_another_holder_does_not_lead_whatever_time_is_left() -> None:
    lost = leader().with_record(OTHERS, 101.0)
    assert (lost.remaining_s(101.0), lost.holds) == (0.0, False)
    assert leader().with_record(None, 101.0).remaining_s(101.0) == 0.0, "the Lease was deleted"


def test_a_term_continues_without_another_holder_in_between_and_ends_with_one() -> None:
    first = leader()
    assert first.remaining_s(130.0) == 0.0
    ours = first.with_unknown_outcome().with_record(first.seen, 130.0)
    claimed = ours.claim(130.0, "t")
    assert claimed is not None
    assert ours.with_written(claimed, 130.0, 130.1).term == first.term == 1
    other = (
        first.with_unknown_outcome()
        .with_record(OTHERS, 130.0)
        .with_record(replace(OTHERS, holder=""), 140.0)
    )
    claimed = other.claim(140.0, "t")
    assert claimed is not None
    assert other.with_written(claimed, 140.0, 140.1).term == 2


def test_an_acquisition_whose_answer_was_lost_is_a_new_term_once_it_is_found() -> None:
    before = follower(None).with_unknown_outcome()
    found = before.with_record(replace(OTHERS, holder="a"), 101.0)
    assert found.remaining_s(101.0) == 0.0, "when it was renewed is not known"
    claimed = found.claim(101.0, "t")
    assert claimed is not None
    assert found.with_written(claimed, 101.0, 101.1).term == 1


def test_only_a_lease_that_is_known_to_be_ours_is_released() -> None:
    released = leader().stepped_down().release_record("t5")
    assert released is not None
    assert (released.holder, released.transitions, released.version) == ("", 0, "1")
    assert leader().with_unknown_outcome().release_record("t5") is None
    assert follower().release_record("t5") is None


@pytest.mark.parametrize(
    ("candidate", "now_s", "pause_s"),
    [
        pytest.param(leader(), 100.5, 1.5, id="leader: until the next renewal is due"),
        pytest.param(leader(), 109.0, 0.0, id="leader: it is due"),
        pytest.param(leader().with_unknown_outcome(), 102.0, 0.5, id="leader: a renewal failed"),
        pytest.param(follower(), 101.0, 2.0, id="follower: looks now and then"),
        pytest.param(follower(), 111.0, 1.0, id="follower: is there when it runs out"),
        pytest.param(follower(), 120.0, 0.5, id="follower: it ran out"),
        pytest.param(follower(None), 101.0, 2.0, id="it cannot be created"),
    ],
)
def test_when_to_act_again(candidate: Candidate, now_s: float, pause_s: float) -> None:
    assert candidate.pause_s(now_s) == pytest.approx(pause_s)


@pytest.mark.parametrize("times", [(12, 12, 2), (12, 8, 5), (8, 12, 2), (12, 8, 0)])
def test_times_under_which_two_could_lead_are_refused(times: tuple[float, float, float]) -> None:
    duration_s, renew_within_s, retry_s = times
    with pytest.raises(ValueError, match="a lease must have 2 x retry <= renew within < duration"):
        LeaseTimes(duration_s=duration_s, renew_within_s=renew_within_s, retry_s=retry_s)


@pytest.mark.parametrize("lease", [{}, {"metadata": 3}, {"metadata": {}, "spec": "x"}])
def test_object_that_is_no_lease_is_refused(lease: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="metadata and a spec"):
        LeaseRecord.parse(lease)


def test_a_record_is_written_as_it_was_read() -> None:
    lease = OTHERS.manifest("headroom-system", "headroom-operator")
    assert LeaseRecord.parse(lease) == OTHERS
    assert lease["metadata"]["resourceVersion"] == "7"
    assert lease["spec"]["leaseDurationSeconds"] == 12
    assert LeaseRecord.parse({"metadata": {"resourceVersion": "1"}}).holder == ""
    assert micro_time(1_800_000_000.25) == "2027-01-15T08:00:00.250000Z"

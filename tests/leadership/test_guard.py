"""The API behind the lease: calls that pass, calls that do not; the Lease's content."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from headroom.controller.leadership.candidate import Candidate, LeaseTimes
from headroom.controller.leadership.guard import LeasedCluster
from headroom.controller.leadership.record import LeaseRecord
from headroom.controller.ports import Cluster
from headroom.errors import NotLeading


class RecordingCluster:
    """A cluster that notes what it is asked and answers at once."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, verb: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> str:
            self.calls.append((verb, args, kwargs))
            return f"{verb} answered"

        return call


class Lease:
    def __init__(self, left_s: float) -> None:
        self.left_s = left_s

    def remaining_s(self) -> float:
        return self.left_s


ONE = {"kind": "Deployment"}
WRITES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("create", (ONE,), {"field_manager": "m"}),
    ("apply", (ONE,), {"field_manager": "m", "dry_run": False}),
    ("apply", (ONE,), {"field_manager": "m", "dry_run": True}),
    ("apply_status", (ONE,), {"field_manager": "m"}),
    ("apply_scale", (ONE, 3), {"field_manager": "m"}),
    ("json_patch", (ONE, [{"op": "test"}]), {"field_manager": "m"}),
]
READS: list[tuple[str, tuple[Any, ...]]] = [
    ("get", ("v1", "Pod", "default", "p")),
    ("list_all", ("v1", "Pod", "default", "a=b", dict)),
    ("get_scale", ("v1", "Pod", "default", "p")),
]


def asked(
    left_s: float, verb: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> RecordingCluster:
    cluster = RecordingCluster()
    guarded = LeasedCluster(cast(Cluster, cluster), Lease(left_s))
    assert asyncio.run(getattr(guarded, verb)(*args, **kwargs)) == f"{verb} answered"
    return cluster


@pytest.mark.parametrize(("verb", "args", "kwargs"), WRITES)
def test_a_leader_writes_what_it_was_given(
    verb: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    assert asked(5.0, verb, args, kwargs).calls == [(verb, args, kwargs)]


def test_an_apply_is_no_dry_run_unless_it_is_said_to_be() -> None:
    [(_, _, said)] = asked(5.0, "apply", (ONE,), {"field_manager": "m"}).calls
    assert said["dry_run"] is False


@pytest.mark.parametrize(("verb", "args"), READS)
def test_every_process_reads(verb: str, args: tuple[Any, ...]) -> None:
    assert asked(0.0, verb, args, {}).calls == [(verb, args, {})]


@pytest.mark.parametrize("left_s", [0.0, -1.0])
@pytest.mark.parametrize(("verb", "args", "kwargs"), WRITES)
def test_without_the_lease_nothing_is_sent_however_fast_the_answer(
    verb: str, args: tuple[Any, ...], kwargs: dict[str, Any], left_s: float
) -> None:
    cluster = RecordingCluster()
    guarded = LeasedCluster(cast(Cluster, cluster), Lease(left_s))
    with pytest.raises(NotLeading, match="not held any more: nothing was written"):
        asyncio.run(getattr(guarded, verb)(*args, **kwargs))
    assert cluster.calls == []


def test_an_empty_lease_has_no_holder() -> None:
    record = LeaseRecord.parse({"metadata": {}})
    assert record == LeaseRecord(
        holder="", duration_s=0.0, transitions=0, acquired="", renewed="", version=""
    )
    assert "resourceVersion" not in record.manifest("n", "m")["metadata"]


@pytest.mark.parametrize(
    ("duration_s", "written"), [(0.0, 1), (0.4, 1), (1.0, 1), (12.0, 12), (12.5, 13)]
)
def test_durations_are_written_in_whole_seconds(duration_s: float, written: int) -> None:
    record = LeaseRecord(holder="a", duration_s=duration_s, transitions=0, acquired="", renewed="")
    assert record.manifest("n", "m")["spec"]["leaseDurationSeconds"] == written


def test_the_times_of_a_lease_and_how_near_they_may_be() -> None:
    times = LeaseTimes()
    assert (times.duration_s, times.renew_within_s, times.retry_s) == (12.0, 8.0, 2.0)
    assert times.request_s == 4.0
    assert LeaseTimes(duration_s=12.0, renew_within_s=8.0, retry_s=4.0).request_s == 4.0


def test_a_released_lease_lasts_a_second_and_no_candidate_holds_it_before_it_is_taken() -> None:
    begun = Candidate(identity="a")
    assert (begun.term, begun.holds, begun.must_read) == (0, False, True)
    assert begun.remaining_s(0.0) == 0.0
    claimed = begun.with_record(None, 100.0).claim(100.0, "t0")
    assert claimed is not None
    assert (claimed.transitions, claimed.version) == (0, "")
    won = begun.with_written(claimed, 100.0, 100.5)
    assert (won.term, won.must_read, won.with_unknown_outcome().must_read) == (1, False, True)
    assert won.remaining_s(100.0) == 8.0
    released = won.release_record("t1")
    assert released is not None
    assert (released.duration_s, released.renewed) == (1.0, "t1")
    assert won.stepped_down().remaining_s(100.0) == 0.0

"""Another client writes the replicas too: memory of it, and pauses of writes."""

from __future__ import annotations

import pytest

from headroom.controller.decide.scaling_conflicts import overridden, remedy
from headroom.controller.scheduling.overwrite_backoff import OverwriteBackoff

Step = tuple[float, str, int]
"""When, who, and the replicas; `we` is a write of ours, another client's is seen at a tick."""


def after(*steps: Step) -> OverwriteBackoff[int]:
    backoff: OverwriteBackoff[int] = OverwriteBackoff()
    for now_s, who, replicas in steps:
        if who == "we":
            backoff = backoff.written(replicas, now_s)
        else:
            backoff = backoff.observe(replicas, who, by_us=False, now_s=now_s)
    return backoff


def overwrites(begun_s: float, rounds: int, every_s: float = 60.0) -> list[Step]:
    """Give rounds of our 5 that argocd makes 2."""
    steps: list[Step] = []
    for n in range(rounds):
        steps += [(begun_s + n * every_s, "we", 5), (begun_s + n * every_s + 2.0, "argocd", 2)]
    return steps


@pytest.mark.parametrize(
    ("steps", "by"),
    [
        ([(0.0, "helm", 2), (2.0, "helm", 3)], ""),
        ([(0.0, "we", 5), (2.0, "", 5)], ""),
        ([(0.0, "we", 5), (2.0, "kubectl", 9)], "kubectl"),
        ([(0.0, "we", 5), (2.0, "", 9)], "another client"),
        ([(0.0, "we", 5), (2.0, "kubectl", 9), (4.0, "kubectl", 9)], "kubectl"),
        ([(0.0, "we", 5), (2.0, "kubectl", 9), (4.0, "we", 6)], ""),
    ],
    ids=["before us", "ours is in force", "named", "without a name", "once", "written again"],
)
def test_overwrite_names_the_writer_until_the_next_write(steps: list[Step], by: str) -> None:
    backoff = after(*steps)
    assert backoff.by == by
    assert bool(overridden(backoff, 9)) is bool(by)
    assert not backoff.is_paused(5.0)


@pytest.mark.parametrize(
    ("steps", "paused_s"),
    [
        (overwrites(0.0, 2), 0.0),
        (overwrites(0.0, 3), 300.0),
        (overwrites(0.0, 3, every_s=400.0), 0.0),
        ([*overwrites(0.0, 3), *overwrites(430.0, 1)], 600.0),
        ([*overwrites(0.0, 3), *overwrites(430.0, 1), *overwrites(1100.0, 1)], 1200.0),
        ([*overwrites(0.0, 3), (430.0, "we", 5), (1031.0, "", 5), *overwrites(1100.0, 1)], 0.0),
    ],
    ids=[
        "two start no pause",
        "three do",
        "three in half an hour do not",
        "again after the pause",
        "and again",
        "not after ten minutes without overwrites",
    ],
)
def test_repeated_overwrites_pause_longer(steps: list[Step], paused_s: float) -> None:
    backoff, ended_s = after(*steps), steps[-1][0]
    assert backoff.is_paused(ended_s + 1.0) is (paused_s > 0.0)
    assert backoff.is_paused(ended_s + paused_s - 1.0) is (paused_s > 0.0)
    assert not backoff.is_paused(ended_s + paused_s + 1.0)


def test_pause_is_bounded() -> None:
    steps, now_s = overwrites(0.0, 3), 122.0
    for _ in range(12):
        now_s += 3601.0
        steps += overwrites(now_s, 1)
    backoff = after(*steps)
    assert backoff.pause_s == 3600.0


def test_pause_with_a_clock_that_went_back_ends_in_time() -> None:
    assert not after(*overwrites(10_000.0, 3)).is_paused(5.0)


def test_managed_fields_show_our_write_after_a_restart() -> None:
    start: OverwriteBackoff[int] = OverwriteBackoff()
    restarted = start.observe(5, "", by_us=True, now_s=0.0)
    assert restarted.observe(2, "argocd", by_us=False, now_s=2.0).by == "argocd"
    unanswered = after((0.0, "we", 5)).observe(7, "", by_us=True, now_s=2.0)
    assert (unanswered.ours, unanswered.by) == (7, "")


@pytest.mark.parametrize(
    ("manager", "says"),
    [
        ("kubectl", "scaling.minReplicas"),
        ("kube-controller-manager", "delete the HorizontalPodAutoscaler"),
        ("argocd-controller", "ignoreDifferences"),
        ("kustomize-controller", "remove spec.replicas from"),
    ],
)
def test_remedy_by_field_manager(manager: str, says: str) -> None:
    assert says in remedy(manager)

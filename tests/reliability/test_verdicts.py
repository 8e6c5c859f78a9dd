"""Verdict on an interrupted run: it came to the same end, or the difference is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reliability.crashes.verdicts import Ending, Memory, judge

LEARNT = Memory(cold_starts=(1.5, 2.0), batch_sizes=frozenset({1.0, 2.0}))
WANTED = Ending(
    replicas=(1, 3),
    asked=3,
    ready=3,
    conditions=frozenset({("Ready", "True", "Serving")}),
    owners=frozenset({("headroom", "Apply")}),
    template="{}",
    memory=LEARNT,
)


def test_same_end_with_all_learned_state_passes() -> None:
    grown = replace(LEARNT, cold_starts=(1.5, 2.0, 1.9))
    assert judge("p", WANTED, replace(WANTED, memory=grown), LEARNT, reached=True).holds
    assert judge("p", WANTED, replace(WANTED, memory=Memory()), Memory(), reached=True).holds


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(WANTED, replicas=(1, 2, 3)), "replicas, change by change: (1, 2, 3)"),
        (replace(WANTED, replicas=(1, 3, 1, 3)), "replicas, change by change"),
        (replace(WANTED, asked=2), "desired replicas: 2 instead of 3"),
        (replace(WANTED, ready=2), "ready replicas: 2 instead of 3"),
        (replace(WANTED, conditions=frozenset()), "conditions: []"),
        (replace(WANTED, owners=frozenset()), "owners"),
        (replace(WANTED, template='{"a":1}'), "pod template"),
        (
            replace(WANTED, memory=replace(LEARNT, cold_starts=(2.0,))),
            "cold starts lost: [1.5",
        ),
        (
            replace(WANTED, memory=replace(LEARNT, batch_sizes=frozenset({1.0}))),
            "learned batch costs lost: [2.0]",
        ),
    ],
)
def test_each_difference_is_named(found: Ending, said: str) -> None:
    verdict = judge("p", WANTED, found, LEARNT, reached=True)
    assert not verdict.holds
    assert len(verdict.wrongs) == 1
    assert verdict.wrongs[0].startswith(said)

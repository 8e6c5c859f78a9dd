"""The phases and their seconds."""

from __future__ import annotations

import pytest

from headroom_server.lifecycle import NEXT, STARTUP, Lifecycle, Phase

WHOLE_LIFE = [Phase.LOAD, Phase.WARM, Phase.SELFTEST, Phase.READY, Phase.DRAINING, Phase.STOPPED]


def test_lifecycle_records_the_seconds_of_each_phase() -> None:
    life = Lifecycle(since_s=10.0)
    for step, phase in enumerate(WHOLE_LIFE):
        life = life.advance(phase, now_s=11.0 + step)
    assert life.seconds(now_s=20.0) == {
        **dict.fromkeys([Phase.INIT, *WHOLE_LIFE[:-1]], 1.0),
        Phase.STOPPED: 4.0,
    }


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("following", list(Phase))
def test_transitions_outside_the_table_raise(phase: Phase, following: Phase) -> None:
    life = Lifecycle(phase=phase, since_s=0.0)
    if following in NEXT[phase]:
        assert life.advance(following, 1.0).phase is following
    else:
        with pytest.raises(
            ValueError, match=f"the phase after {phase} must be .*; got {following}"
        ):
            life.advance(following, 1.0)


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.STOPPED])
def test_every_phase_can_reach_stopped(phase: Phase) -> None:
    assert Phase.STOPPED in NEXT[phase]


def test_ready_and_starting_exclude_each_other() -> None:
    for phase in Phase:
        life = Lifecycle(phase=phase, since_s=0.0)
        assert life.starting == (phase in STARTUP)
        assert not (life.ready and life.starting)


def test_clock_set_back_counts_as_zero() -> None:
    assert Lifecycle(since_s=5.0).seconds(now_s=3.0) == {Phase.INIT: 0.0}

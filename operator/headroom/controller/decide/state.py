"""State of the decide step for one service between ticks."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.controller.decide.decide_tick import ServiceState
from headroom.controller.decide.floors import Floors
from headroom.controller.decide.token_slo import TokenSLOController
from headroom.controller.scheduling.overwrite_backoff import OverwriteBackoff
from headroom.scaling import State


@dataclass(slots=True, kw_only=True)
class DecideState:
    """Written by the decide step only."""

    service: ServiceState
    overwrites: OverwriteBackoff[int] = field(default_factory=OverwriteBackoff)
    floors: Floors = field(default_factory=Floors)
    mode: str = ""
    """scaling.mode at the last tick; empty before the first."""

    def reset_on_mode_change(self, mode: str) -> None:
        """Restart every hold if the mode changed: a switch alone scales nothing."""
        if self.mode not in ("", mode):
            self.restart()
        self.mode = mode

    def restart(self) -> None:
        """Empty every window and restart every hold, as a restart of the operator does.

        Only what was learned and has no time stays.
        """
        known = self.service
        self.service = ServiceState(
            state=State.from_checkpoint(known.state.to_checkpoint()),
            tokens=TokenSLOController.from_checkpoint(known.tokens.to_checkpoint()),
        )

"""Settings: how long the emulated engine sleeps, and what goes wrong with it. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from headroom_server.settings.fields import Factor, Group, SecondsOrNone, listed, pair


class EmulationSettings(Group):
    """Emulated engine."""

    emulated_fixed_cost_s: SecondsOrNone = 0.006
    """Time per batch, independent of its items, in seconds."""
    emulated_per_item_cost_s: SecondsOrNone = 0.0005
    """Additional time per item, in seconds."""
    emulated_per_token_cost_s: SecondsOrNone = 0.0
    """Additional time per item and unit of its padded length, in seconds."""
    emulated_lengths: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**31)], ...], BeforeValidator(listed)
    ] = ()
    """Padded lengths, ascending; an item is then a row of any length up to the last."""
    emulated_slowdown: Annotated[tuple[SecondsOrNone, Factor] | None, BeforeValidator(pair)] = None
    """`30:2`: from 30 s after loading, every batch takes twice as long."""
    emulated_loss: Annotated[
        tuple[Annotated[int, Field(ge=0, le=999)], SecondsOrNone] | None, BeforeValidator(pair)
    ] = None
    """`1:30`: 30 s after loading, device 1 (counted from 0, as in metrics) is lost."""
    emulated_load_s: SecondsOrNone = 1.0
    """Time to load the model, in seconds."""
    emulated_input_size: int = Field(4, ge=1, le=1_000_000)
    """Numbers per item."""

    @field_validator("emulated_lengths")
    @classmethod
    def _ascending(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if any(a >= b for a, b in pairwise(lengths)):
            raise ValueError("must be ascending, without duplicates")
        return lengths

    @model_validator(mode="after")
    def _an_emulated_batch_takes_time(self) -> Self:
        if self.emulated_fixed_cost_s + self.emulated_per_item_cost_s <= 0:
            raise ValueError(
                "HEADROOM_EMULATED_FIXED_COST_S + HEADROOM_EMULATED_PER_ITEM_COST_S must be above "
                "0; got 0"
            )
        return self

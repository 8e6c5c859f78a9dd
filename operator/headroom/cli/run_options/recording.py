"""Options of `headroom run` for the recording of its ticks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

RECORD_MIB = 48
"""Fits the 64 MiB of the shipped manifest's /tmp: eleven days of one service at a tick of 2 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """The recording of ticks."""

    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record each tick's observations in this file. `headroom simulate` replays it: a "
            'scenario names it with arrivals = { recording = "FILE" }.',
        ),
    ] = None
    record_mib: Annotated[
        int, typer.Option(min=1, help="Maximum size of the recording, in MiB.")
    ] = RECORD_MIB

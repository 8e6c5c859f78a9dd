"""The `arrivals` table of a scenario file: a trace, a recording, or a generator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, model_validator

from headroom.simulator.arrivals.recording import RecordedService
from headroom.simulator.arrivals.replay import replay
from headroom.simulator.scenario import Arrivals
from headroom.simulator.scenario_file.arrivals_kind import Kind, Library
from headroom.simulator.scenario_file.generator_tables import (
    ConstantTable,
    DiurnalTable,
    OnOffTable,
    RampTable,
    SpikesTable,
    StagesTable,
    StepTable,
    UsersLoadTable,
)
from headroom.simulator.scenario_file.table import Span, Time, rule_broken

Text = Annotated[str, Field(min_length=1, max_length=1000)]

TAG = "arrivals: "
"""Prefix of a kind's name in pydantic's error locations, to distinguish it from a key."""


class Windowed(Kind):
    """A window of a recording, times a factor."""

    start: Time | None = None
    duration: Span | None = None
    scale: Annotated[float, Field(gt=0, le=1e6)] | None = None
    mean_rps: Annotated[float, Field(gt=0, le=1e6)] | None = None

    @model_validator(mode="after")
    def _one_factor(self) -> Self:
        if self.scale is not None and self.mean_rps is not None:
            raise rule_broken("must have scale or mean_rps, not both", "both")
        return self

    def window(self) -> dict[str, Any]:
        """Return the window and factor as arguments."""
        keys = ("start_s", "duration_s", "scale", "mean_rps")
        return {key: value for key, value in self.given().items() if key in keys}


class TraceTable(Windowed):
    """A trace: a shipped one by name, or a file relative to the scenario's."""

    trace: Text

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return the window of the trace."""
        return replay(library.trace(self.trace), stream=stream, **self.window())


class RecordingTable(Windowed):
    """A file of `headroom run --record`; `service` is required if it has several."""

    recording: Text
    service: Text | None = None

    def recorded(self, library: Library) -> RecordedService:
        """Return the recorded service.

        Raises:
            ValueError: the recording has no service of this name, or several and none is named.
        """
        services = library.recording(self.recording)
        if self.service is None and len(services) == 1:
            return next(iter(services.values()))
        if self.service is None or self.service not in services:
            raise ValueError(
                f"service must be one of the recorded {', '.join(services)}; got {self.service}"
            )
        return services[self.service]

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return the window of the recording."""
        return self.recorded(library).arrivals(stream=stream, **self.window())


GENERATORS = ("constant", "step", "ramp", "stages", "spikes", "diurnal", "on-off", "users")


def _kind(value: object) -> str | None:
    """Return the tag of a table's kind; None if it has none, several, or an unknown one."""
    if not isinstance(value, Mapping):
        return None
    named = [key for key in ("trace", "recording", "generator") if key in value]
    if named == ["generator"]:
        generator = value["generator"]
        return f"{TAG}{generator}" if generator in GENERATORS else None
    return f"{TAG}{named[0]}" if len(named) == 1 else None


ArrivalsTable = Annotated[
    Annotated[TraceTable, Tag(f"{TAG}trace")]
    | Annotated[RecordingTable, Tag(f"{TAG}recording")]
    | Annotated[ConstantTable, Tag(f"{TAG}constant")]
    | Annotated[StepTable, Tag(f"{TAG}step")]
    | Annotated[RampTable, Tag(f"{TAG}ramp")]
    | Annotated[StagesTable, Tag(f"{TAG}stages")]
    | Annotated[SpikesTable, Tag(f"{TAG}spikes")]
    | Annotated[DiurnalTable, Tag(f"{TAG}diurnal")]
    | Annotated[OnOffTable, Tag(f"{TAG}on-off")]
    | Annotated[UsersLoadTable, Tag(f"{TAG}users")],
    Discriminator(
        _kind,
        custom_error_type="rule",
        custom_error_message="must name exactly one of trace, recording and generator, the last "
        f"one of {', '.join(GENERATORS)}",
    ),
]

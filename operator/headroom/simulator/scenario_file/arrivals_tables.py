"""The `arrivals` table of a scenario file: a trace, a recording, or a generator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import Discriminator, Field, Tag, model_validator

from headroom.simulator.arrivals import shapes
from headroom.simulator.arrivals.poisson import OnOffArrivals, PoissonArrivals
from headroom.simulator.arrivals.recording import RecordedService
from headroom.simulator.arrivals.replay import replay
from headroom.simulator.arrivals.trace_file import Trace
from headroom.simulator.scenario import Arrivals
from headroom.simulator.scenario_file.tables import Span, Table, Time, rule_broken

Rate = Annotated[float, Field(ge=0, le=1e6)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]

TAG = "arrivals: "
"""Prefix of a kind's name in pydantic's error locations, to distinguish it from a key."""


class Library(Protocol):
    """The source of traces and recordings."""

    def trace(self, named: str) -> Trace:
        """Return a trace by shipped name or path."""
        ...

    def recording(self, path: str) -> Mapping[str, RecordedService]:
        """Return a recording's services by name."""
        ...


class Kind(Table, ABC):
    """The interface of all kinds."""

    @abstractmethod
    def value(self, stream: str, library: Library) -> Arrivals:
        """Return the arrivals of the service `stream`.

        Raises:
            ValueError: they are invalid.
        """


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


class ConstantTable(Kind):
    """A constant rate."""

    generator: Literal["constant"]
    duration: Span
    rps: Rate

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        fields = _without_generator(self)
        return PoissonArrivals(profile=shapes.constant(**fields), stream=stream)


class StepTable(Kind):
    """A step from one rate to another."""

    generator: Literal["step"]
    duration: Span
    before_rps: Rate
    after_rps: Rate
    at: Span

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        fields = _without_generator(self)
        return PoissonArrivals(profile=shapes.step(**fields), stream=stream)


class RampTable(Kind):
    """A linear rise or fall."""

    generator: Literal["ramp"]
    duration: Span
    from_rps: Rate
    to_rps: Rate
    ramp_start: Time | None = None
    ramp_end: Time | None = None

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        fields = _without_generator(self)
        for key in ("start_s", "end_s"):
            if f"ramp_{key}" in fields:
                fields[key] = fields.pop(f"ramp_{key}")
        return PoissonArrivals(profile=shapes.ramp(**fields), stream=stream)


class StageTable(Table):
    """A stage of a load."""

    duration: Span
    rps: Rate
    to_rps: Rate | None = None


class StagesTable(Kind):
    """Stages in sequence, each constant or linear to another rate."""

    generator: Literal["stages"]
    stages: Annotated[list[StageTable], Field(min_length=1, max_length=100_000)]

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        parts = [shapes.Stage(**stage.given()) for stage in self.stages]
        return PoissonArrivals(profile=shapes.stages(parts), stream=stream)


class SpikesTable(Kind):
    """A base rate with rectangular spikes."""

    generator: Literal["spikes"]
    duration: Span
    base_rps: Rate
    peak_rps: Rate
    every: Span
    lasting: Span
    first: Time | None = None

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        fields = _without_generator(self)
        return PoissonArrivals(profile=shapes.spikes(**fields), stream=stream)


class DiurnalTable(Kind):
    """A sine between two rates."""

    generator: Literal["diurnal"]
    duration: Span
    low_rps: Rate
    high_rps: Rate
    period: Span | None = None
    phase: Time | None = None

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        fields = _without_generator(self)
        return PoissonArrivals(profile=shapes.diurnal(**fields), stream=stream)


class OnOffTable(Kind):
    """A source that switches between two rates after exponential times."""

    generator: Literal["on-off"]
    duration: Span
    on_rps: Rate
    off_rps: Rate
    mean_on: Span
    mean_off: Span

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return arrivals of a Markov-modulated Poisson process."""
        return OnOffArrivals(stream=stream, **_without_generator(self))


class UsersLoadTable(Kind):
    """The users of the service's clients, who send when they have thought."""

    generator: Literal["users"]
    duration: Span

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return an empty stream; the service, once known, has the demand of its users."""
        return PoissonArrivals(
            profile=shapes.constant(duration_s=self.duration.seconds, rps=0.0), stream=stream
        )


GENERATORS = ("constant", "step", "ramp", "stages", "spikes", "diurnal", "on-off", "users")


def _without_generator(table: Table) -> dict[str, Any]:
    fields = table.given()
    del fields["generator"]
    return fields


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
        custom_error_message="names exactly one of trace, recording and generator, the last "
        f"one of {', '.join(GENERATORS)}",
    ),
]

"""The generators of arrivals in a scenario file: a rate over time, or a random source."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from headroom.simulator.arrivals import shapes
from headroom.simulator.arrivals.poisson import OnOffArrivals, PoissonArrivals
from headroom.simulator.arrivals.rates import Profile
from headroom.simulator.scenario import Arrivals
from headroom.simulator.scenario_file.arrivals_kind import Kind, Library
from headroom.simulator.scenario_file.table import Span, Table, Time

Rate = Annotated[float, Field(ge=0, le=1e6)]


class Generator(Kind, ABC):
    """Arrivals that are computed."""

    def given(self) -> dict[str, Any]:
        """Return what the generator is given, without its name."""
        fields = super().given()
        del fields["generator"]
        return fields


class Shaped(Generator, ABC):
    """Poisson arrivals at a rate that follows a shape."""

    shape: ClassVar[Callable[..., Profile]]

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        return PoissonArrivals(profile=self.shape(**self.given()), stream=stream)


class ConstantTable(Shaped):
    """A constant rate."""

    shape = staticmethod(shapes.constant)

    generator: Literal["constant"]
    duration: Span
    rps: Rate


class StepTable(Shaped):
    """A step from one rate to another."""

    shape = staticmethod(shapes.step)

    generator: Literal["step"]
    duration: Span
    before_rps: Rate
    after_rps: Rate
    at: Span


class RampTable(Shaped):
    """A linear rise or fall."""

    shape = staticmethod(shapes.ramp)
    renamed: ClassVar[Mapping[str, str]] = {"ramp_start": "start_s", "ramp_end": "end_s"}

    generator: Literal["ramp"]
    duration: Span
    from_rps: Rate
    to_rps: Rate
    ramp_start: Time | None = None
    ramp_end: Time | None = None


class StageTable(Table):
    """A stage of a load."""

    duration: Span
    rps: Rate
    to_rps: Rate | None = None


class StagesTable(Generator):
    """Stages in sequence, each constant or linear to another rate."""

    generator: Literal["stages"]
    stages: Annotated[list[StageTable], Field(min_length=1, max_length=100_000)]

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return Poisson arrivals."""
        parts = [shapes.Stage(**stage.given()) for stage in self.stages]
        return PoissonArrivals(profile=shapes.stages(parts), stream=stream)


class SpikesTable(Shaped):
    """A base rate with rectangular spikes."""

    shape = staticmethod(shapes.spikes)

    generator: Literal["spikes"]
    duration: Span
    base_rps: Rate
    peak_rps: Rate
    every: Span
    lasting: Span
    first: Time | None = None


class DiurnalTable(Shaped):
    """A sine between two rates."""

    shape = staticmethod(shapes.diurnal)

    generator: Literal["diurnal"]
    duration: Span
    low_rps: Rate
    high_rps: Rate
    period: Span | None = None
    phase: Time | None = None


class OnOffTable(Generator):
    """A source that switches between two rates after exponential times."""

    generator: Literal["on-off"]
    duration: Span
    on_rps: Rate
    off_rps: Rate
    mean_on: Span
    mean_off: Span

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return arrivals of a Markov-modulated Poisson process."""
        return OnOffArrivals(stream=stream, **self.given())


class UsersLoadTable(Generator):
    """The users of the service's clients, who send when they have thought."""

    generator: Literal["users"]
    duration: Span

    def value(self, stream: str, library: Library) -> Arrivals:
        """Return an empty stream; the service, once known, has the demand of its users."""
        return PoissonArrivals(
            profile=shapes.constant(duration_s=self.duration.seconds, rps=0.0), stream=stream
        )

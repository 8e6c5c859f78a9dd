"""A promise on tokens and its measurement, as values and as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headroom.api.service_status.status_durations import duration_text
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.token_decision import TokenMeasurement
from headroom.scaling.values.tokens import Binding

FIELDS = {
    Binding.TIME_TO_FIRST_TOKEN: "timeToFirstToken",
    Binding.TIME_PER_OUTPUT_TOKEN: "timePerOutputToken",
    Binding.LATENCY: "latency",
}
NAMES = {
    "timeToFirstToken": "time to first token",
    "timePerOutputToken": "time per output token",
    "latency": "latency",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One promise and its measurement."""

    name: str
    """Name of its field in `slo`."""
    percentile: int
    target_s: float
    value_s: float | None
    """None where no request was counted in the window."""
    class_name: str = ""
    """The class of requests that it is promised to; empty: the service's."""
    between_s: tuple[float, float] | None = None
    """Bounds of the wide bucket with both percentile and target: which is larger is not known."""

    @property
    def decided(self) -> bool:
        """Whether requests were counted that tell whether it is kept."""
        return self.value_s is not None and self.between_s is None

    @property
    def missed(self) -> bool:
        """Whether it is known to be broken."""
        return self.decided and self.value_s is not None and self.value_s > self.target_s

    @property
    def ratio(self) -> float | None:
        """The measured percentile over the target; 1 where it is not known which is larger."""
        if self.value_s is None:
            return None
        return self.value_s / self.target_s if self.decided else 1.0

    def at_most(self, other: TokenMeasurement | None) -> Measured:
        """Return the lower of this measurement of the service and another one of it.

        The other one places the requests of a wide bucket, so that it is decided.
        """
        if other is None or self.class_name or other.measured_s is None or self.value_s is None:
            return self
        return replace(self, value_s=min(self.value_s, other.measured_s), between_s=None)

    @property
    def message(self) -> str:
        """The measured percentile and its target."""
        whose = f" of class {self.class_name}" if self.class_name else ""
        what = f"p{self.percentile} of {NAMES[self.name]}{whose}"
        found = "not known" if self.value_s is None else _text(self.value_s)
        if self.between_s is not None:
            least, most = map(_text, self.between_s)
            found = f"at least {least} and at most {most}, which is all that the servers count"
        return f"{what} is {found}, the target {duration_text(self.target_s)}"


def completed(decision: Decision, measured: Iterable[Measured]) -> Decision:
    """Return the decision with measurements of the service's own promises that the model lacks.

    A histogram that stands for the time per output token counts no requests: the model does not
    read it, but it shows whether the promise is kept.
    """
    generation = decision.generation
    if generation is None:
        return decision
    found = {one.name: one.value_s for one in measured if not one.class_name}
    first, output = (
        replace(one, measured_s=found.get(name)) if one and one.measured_s is None else one
        for name, one in (
            ("timeToFirstToken", generation.first_token),
            ("timePerOutputToken", generation.output_token),
        )
    )
    if first is generation.first_token and output is generation.output_token:
        return decision
    shown = replace(generation, first_token=first, output_token=output)
    return replace(decision, generation=shown)


def _text(seconds: float) -> str:
    return "above every bound" if math.isinf(seconds) else duration_text(seconds)

"""`status.classes`: what each class of requests was promised, and what was measured of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.service_status.generation_status import TokenPromiseStatus, token_promise
from headroom.api.service_status.status_types import Word, rounded
from headroom.api.values import MapBy, Value
from headroom.scaling.generation.promises.class_judgement import ClassMeasurement, ClassState
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.generation.promises.token_promises import WINDOW_S
from headroom.scaling.values.token_decision import TokenMeasurement

NOT_COUNTED = "NotCountedByClass"


class ClassStatus(Value):
    """One class of requests whose promises differ from those of slo. Unknown values are omitted."""

    name: Word
    """Name of the class."""
    best_effort: bool = False
    """True where the class has no promise."""
    unknown: Word | None = None
    """Reason why nothing is measured. NotCountedByClass: the server's metrics do not name the
    class; the strictest promise is kept for all requests."""
    attainment: float | None = None
    """Share of the last minute's requests that kept every promise of the class."""
    requests_per_second: float | None = None
    """Requests that ended in the last minute, per second."""
    promises: Annotated[
        tuple[TokenPromiseStatus, ...], Field(max_length=4, strict=False), MapBy("name")
    ] = ()

    @property
    def sentence(self) -> str:
        """The class as text."""
        if self.best_effort:
            return "best effort"
        parts = [
            f"{one.name} {one.measured or 'unknown'} (target {one.target})" for one in self.promises
        ]
        if self.unknown is not None:
            parts.append(f"not measured: {self.unknown}")
        if self.attainment is not None:
            parts.append(f"{self.attainment:.1%} in time")
        return ", ".join(parts)


def class_statuses(classes: ClassState) -> tuple[ClassStatus, ...]:
    """Render every class whose promises differ from those of the service."""
    judged = classes.judgement
    found = {} if judged is None else {one.promise.name: one for one in judged.classes}
    return tuple(
        ClassStatus(name=one.name, best_effort=True)
        if one.best_effort
        else _promised(classes, one, found.get(one.name))
        for one in classes.promises
        if one.name != SERVICE
    )


def _promised(
    classes: ClassState, promise: ClassPromise, found: ClassMeasurement | None
) -> ClassStatus:
    window = {} if found is None else found.window
    promises = []
    for binding, target in promise.by_binding.items():
        one = window.get(binding)
        measured = TokenMeasurement(
            target=target,
            measured_s=None if one is None else one.value_s,
            late_share=None if one is None else one.late_share,
            expected_s=None,
            floor_s=classes.floors_s.get((promise.name, binding)),
        )
        promises.append(token_promise(binding, measured))
    return ClassStatus(
        name=promise.name,
        unknown=NOT_COUNTED if found is None else None,
        attainment=None if found is None else rounded(found.attainment),
        requests_per_second=None if found is None else rounded(found.requests / WINDOW_S),
        promises=tuple(promises),
    )

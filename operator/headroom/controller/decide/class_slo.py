"""Promises per class: the servers' counts of each class in the last minute. Pure.

A server that does not count per class leaves the promises unmeasured, and nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.controller.decide.measured_promise import FIELDS, Measured
from headroom.controller.decide.token_window import TokenWindow
from headroom.scaling.generation.promises.class_judgement import (
    ClassJudgement,
    ClassMeasurement,
    ClassState,
)
from headroom.scaling.generation.promises.classes import SERVICE, ClassCounts, ClassPromise, grouped
from headroom.scaling.generation.promises.token_promises import Measured as MeasuredPromise
from headroom.scaling.generation.promises.token_promises import measured_of
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import Binding
from headroom.telemetry.pages.reading import Reading

NO_BOUNDS = (math.inf,)
_Key = tuple[str, Binding | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSLO:
    """State of the classes from tick to tick."""

    windows: Mapping[_Key, TokenWindow] = field(default_factory=dict)
    """Windows by class and promise; of None, the requests that were not answered."""
    state: ClassState = field(default_factory=ClassState)
    """State before the decision."""

    def observe(
        self,
        promises: tuple[ClassPromise, ...],
        readings: Mapping[str, Reading],
        now_s: float,
        *,
        counted: bool,
    ) -> ClassSLO:
        """Process the newest reading of each pod; `counted`: the servers count per class."""
        if not promises:
            return NO_CLASSES
        if not counted:
            return ClassSLO(state=ClassState(promises=promises))
        pages = {pod: grouped(_counts(one), promises) for pod, one in readings.items()}
        promised = [one for one in promises if not one.best_effort]
        windows: dict[_Key, TokenWindow] = {}
        for one in promised:
            for binding in (None, *one.by_binding):
                key = one.name, binding
                newest = {pod: _page(found[one.name], binding) for pod, found in pages.items()}
                windows[key] = self.windows.get(key, TokenWindow()).observe(newest, now_s)
        classes = tuple(_measurement(one, windows, now_s) for one in promised)
        unpromised = [one.name for one in promises if one.best_effort]
        best_effort = [found[name] for found in pages.values() for name in unpromised]
        judgement = ClassJudgement(classes=classes)
        state = ClassState(
            promises=promises,
            judgement=judgement,
            has_best_effort=any(one.fills for one in best_effort),
            best_effort_in_flight=sum(one.in_flight for one in best_effort),
        )
        return ClassSLO(windows=windows, state=state)

    @property
    def measured(self) -> tuple[Measured, ...] | None:
        """The promises that requests of the last minute were counted for; None if none can be."""
        if self.state.judgement is None:
            return None
        return tuple(
            Measured(
                name=FIELDS[binding],
                percentile=round(100 * one.target.percentile),
                target_s=one.target.seconds,
                value_s=one.value_s,
                class_name=each.promise.name,
            )
            for each in self.state.judgement.classes
            for binding, one in each.window.items()
            if one.value_s is not None
        )


NO_CLASSES = ClassSLO()


def _counts(reading: Reading) -> Mapping[str, ClassCounts]:
    """Return the counts by class; without any class all requests are the service's."""
    if reading.classes:
        return reading.classes
    whole = ClassCounts(
        missed=reading.missed or 0.0,
        first_token=reading.first_token,
        output_token=reading.output_token,
        latency=reading.latency,
    )
    return {SERVICE: whole}


def _page(counts: ClassCounts, binding: Binding | None) -> LatencyCounts | None:
    if binding is not None:
        return counts.of(binding)
    return LatencyCounts(bounds_s=NO_BOUNDS, counts=(counts.missed,))


def _measurement(
    promise: ClassPromise, windows: Mapping[_Key, TokenWindow], now_s: float
) -> ClassMeasurement:
    missed = windows[promise.name, None]
    recent: dict[Binding, MeasuredPromise] = {}
    latest: dict[Binding, MeasuredPromise] = {}
    for binding, target in promise.by_binding.items():
        window = windows[promise.name, binding]
        for into, counts, lost in (
            (recent, window.total, missed.total),
            (latest, window.latest(now_s), missed.latest(now_s)),
        ):
            bounds_s = window.bounds_s or NO_BOUNDS
            known = np.zeros(len(bounds_s)) if counts is None else counts
            into[binding] = measured_of(target, bounds_s, known, _last(lost))
    return ClassMeasurement(promise=promise, window=recent, latest=latest)


def _last(counts: NDArray[np.float64] | None) -> float:
    return 0.0 if counts is None else float(counts[-1])

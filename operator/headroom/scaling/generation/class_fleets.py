"""The serving models of a service whose classes have different promises: which one binds. Pure.

All classes share replicas, iterations and memory, and requests of all of them count as the load. So
each class has the model of the whole load with its own promises, and the one that carries the
fewest requests per replica is what the service is sized by. Worked: 1.9/s within 3 s to the first
token for most, 1.2/s within 0.5 s for one class: 1.2/s, where that class binds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.generation.classes import ClassState
from headroom.scaling.generation.fleet import GeneratingFleet
from headroom.scaling.token_values import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFleets:
    """One model per class with a promise; that of the service first."""

    by_class: Mapping[str, GeneratingFleet]

    def binding(self, target_s: float, replicas: int) -> GeneratingFleet:
        """Return the model that carries the fewest requests per replica; of equals the first."""
        return min(
            self.by_class.values(), key=lambda one: one.capacity_rps(target_s, max(1, replicas))
        )

    def described(self, classes: ClassState, fleet: GeneratingFleet) -> ClassState:
        """Return what is known of the classes, with the one that binds and all floors."""
        floors: dict[tuple[str, Binding], float] = {}
        for name, one in self.by_class.items():
            floors |= {(name, bound): floor for bound, floor in one.capacity.floors_s.items()}
        return replace(classes, binding=fleet.of_class, floors_s=floors)

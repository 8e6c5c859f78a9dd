"""The serving models of a service whose classes have different promises: which one binds. Pure.

All classes share replicas, iterations and memory, and requests of all of them count as the load. So
each class has the model of the whole load with its own promises, and the one that carries the
fewest requests per replica is what the service is sized by. Worked: 4.2/s within 2 s to the first
token for most, 1.3/s within 0.25 s for one class: 1.3/s, where that class binds.
"""

from __future__ import annotations

from collections.abc import Callable

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise


def binding_fleet(
    classes: ClassState,
    own: GeneratingFleet,
    fleet_of: Callable[[ClassPromise], GeneratingFleet],
    replicas: int,
) -> tuple[GeneratingFleet, ClassState]:
    """Return the model of the class that binds, and the classes with it and their floors.

    `own` is the model of the service's promises, which binds among equals.
    """
    if not classes.promises:
        return own, classes
    fleets = [own, *(fleet_of(one) for one in classes.promised if one.name != SERVICE)]
    binding = min(fleets, key=lambda one: one.capacity_rps(one.target_s, replicas))
    floors_s = {
        (one.of_class, bound): floor_s
        for one in fleets
        for bound, floor_s in one.capacity.floors_s.items()
    }
    return binding, replace(classes, binding=binding.of_class, floors_s=floors_s)

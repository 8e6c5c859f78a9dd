"""Specs with invalid schedules of replicas; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.specs.spec_cases import (
    InvalidSpec,
    missing,
    refused,
    too_many,
)

_OFFICE = {"name": "office", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "minReplicas": 2}


def _scheduled(**changes: Any) -> list[dict[str, Any]]:
    return [_OFFICE, _OFFICE | {"name": "another"} | changes]


INVALID_SCHEDULES: tuple[InvalidSpec, ...] = (
    refused(
        "a schedule above the maximum",
        "spec.scaling",
        {"maxReplicas": 8, "schedules": _scheduled(minReplicas=9)},
        "minReplicas of each entry in scaling.schedules must be at most scaling.maxReplicas",
        field="spec.scaling.schedules",
    ),
    refused(
        "a schedule above the default maximum",
        "spec.scaling.schedules",
        _scheduled(minReplicas=21),
        "minReplicas of each entry in scaling.schedules must be at most scaling.maxReplicas",
    ),
    refused(
        "two schedules of one name",
        "spec.scaling.schedules",
        _scheduled(name="office"),
        "Duplicate value",
        "entries must differ in name; office occurs more than once",
    ),
    too_many("spec.scaling.schedules", 16, [_OFFICE | {"name": f"floor-{i}"} for i in range(17)]),
    refused(
        "a schedule that ends when it starts",
        "spec.scaling.schedules",
        _scheduled(end=_OFFICE["start"]),
        "end must differ from start",
        field="spec.scaling.schedules[1].end",
    ),
    *(
        refused(
            f"a schedule at {cron!r}",
            "spec.scaling.schedules",
            _scheduled(**{field: cron}),
            "must be a cron expression of five fields, such as `0 8 * * 1-5`",
            field=f"spec.scaling.schedules[1].{field}",
        )
        for field, cron in (
            ("start", ""),
            ("start", "@daily"),
            ("start", "0 8 * *"),
            ("end", "0 18 * * 1-5 2026"),
            ("end", "0 18 * * $(id)"),
        )
    ),
    *(
        refused(
            f"a schedule in the zone {zone!r}",
            "spec.scaling.schedules",
            _scheduled(timeZone=zone),
            "must be a time zone such as Europe/Berlin, or UTC",
            field="spec.scaling.schedules[1].timeZone",
        )
        for zone in ("", "../../etc/passwd", "Europe/Berlin ")
    ),
    *(
        missing(
            f"a schedule without {field}",
            "spec.scaling.schedules",
            [{key: value for key, value in _OFFICE.items() if key != field}],
            field=f"spec.scaling.schedules[0].{field}",
        )
        for field in _OFFICE
    ),
)

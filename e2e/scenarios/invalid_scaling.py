"""Specs with an invalid scaling target, owner or schedule; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.spec_cases import (
    ABSENT,
    MATCH,
    MINIMAL,
    InvalidSpec,
    bounds,
    duration_bounds,
    too_many,
)

TARGETED: dict[str, Any] = {
    "runtime": {},
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
    "slo": {"latency": {"target": "250ms"}},
}
"""What scales a workload that exists, and nothing else."""


def _targeted(**changes: Any) -> dict[str, Any]:
    target = {k: v for k, v in (TARGETED["targetRef"] | changes).items() if v is not ABSENT}
    return TARGETED | {"targetRef": target}


_OFFICE = {"name": "office", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "minReplicas": 2}


def _scheduled(**changes: Any) -> list[dict[str, Any]]:
    return [_OFFICE, _OFFICE | {"name": "another"} | changes]


INVALID_SCALING: tuple[InvalidSpec, ...] = (
    InvalidSpec(
        why="neither an image nor a target",
        path="spec.runtime.image",
        value=ABSENT,
        field="spec.targetRef",
        says="spec must set exactly one of runtime.image",
    ),
    InvalidSpec(
        why="an image and a target",
        path="spec.targetRef",
        value=TARGETED["targetRef"],
        says="spec must set exactly one of runtime.image",
    ),
    InvalidSpec(
        why="arguments for pods of a target",
        path="spec",
        value=TARGETED | {"runtime": {"args": ["--fast"]}},
        field="spec.targetRef",
        says="runtime.args, env, resources, podTemplate, model.uri and rollout must not be set",
    ),
    InvalidSpec(
        why="a model for pods of a target",
        path="spec",
        value=TARGETED | {"model": {"uri": "pvc://claim"}},
        field="spec.targetRef",
        says="runtime.args, env, resources, podTemplate, model.uri and rollout must not be set",
    ),
    InvalidSpec(
        why="a rollout of a target",
        path="spec",
        value=TARGETED | {"rollout": {"maxSurge": 1}},
        field="spec.targetRef",
        says="runtime.args, env, resources, podTemplate, model.uri and rollout must not be set",
    ),
    *(
        InvalidSpec(
            why=f"a rollout that replaces nothing: {surge}, {unavailable}",
            path="spec.rollout",
            value={"maxSurge": surge, "maxUnavailable": unavailable},
            field="spec.rollout.maxUnavailable",
            says="rollout.maxSurge and rollout.maxUnavailable must not both be 0",
        )
        for surge, unavailable in ((0, 0), ("0%", 0), (0, "0%"))
    ),
    InvalidSpec(
        why="a share of more than all replicas",
        path="spec.rollout.maxSurge",
        value="101%",
        says="should match",
        parser_says="must be a number from 0 to 1000, or a share of the replicas",
    ),
    InvalidSpec(
        why="a surge of too many replicas",
        path="spec.rollout.maxSurge",
        value=1001,
        says="should be less than or equal to 1000",
        parser_says="must be a number from 0 to 1000, or a share of the replicas",
    ),
    InvalidSpec(
        why="a target of its own kind",
        path="spec",
        value=_targeted(apiVersion="headroom.dev/v1alpha1", kind="InferenceService"),
        field="spec.targetRef.kind",
        says="targetRef must name a workload that runs pods",
    ),
    InvalidSpec(
        why="a target without a name",
        path="spec",
        value=_targeted(name=ABSENT),
        field="spec.targetRef.name",
        says="Required value",
        parser_says="is required",
    ),
    *(
        InvalidSpec(
            why=f"a target whose {field} leads elsewhere",
            path="spec",
            value=_targeted(**{field: value}),
            field=f"spec.targetRef.{field}",
            says="should match",
            parser_says=MATCH,
        )
        for field, value in (
            ("apiVersion", "apps/v1/namespaces/other"),
            ("kind", "Deployment/../x"),
            ("name", "../other/llm"),
        )
    ),
    InvalidSpec(
        why="External without replicas",
        path="spec.scaling",
        value={"mode": "External"},
        field="spec.replicas",
        says="replicas must be set where scaling.mode is External",
    ),
    InvalidSpec(
        why="replicas without External",
        path="spec.replicas",
        value=2,
        says="replicas must be set where scaling.mode is External",
    ),
    InvalidSpec(
        why="replicas above the bounds",
        path="spec",
        value=MINIMAL["spec"] | {"scaling": {"mode": "External"}, "replicas": 21},
        field="spec.replicas",
        says="replicas must be from scaling.minReplicas to scaling.maxReplicas",
    ),
    InvalidSpec(
        why="replicas below the bounds",
        path="spec",
        value=MINIMAL["spec"] | {"scaling": {"mode": "External", "minReplicas": 2}, "replicas": 1},
        field="spec.replicas",
        says="replicas must be from scaling.minReplicas to scaling.maxReplicas",
    ),
    InvalidSpec(
        why="pods of a target described in a template",
        path="spec",
        value=TARGETED | {"runtime": {"podTemplate": {"spec": {"containers": []}}}},
        field="spec.targetRef",
        says="runtime.args, env, resources, podTemplate, model.uri and rollout must not be set",
    ),
    InvalidSpec(
        why="a target at zero replicas",
        path="spec",
        value=TARGETED | {"routing": {"mode": "Gateway"}, "scaling": {"minReplicas": 0}},
        field="spec.scaling.minReplicas",
        says="scaling.minReplicas must be at least 1 with targetRef",
    ),
    InvalidSpec(
        why="a name for the Service of replicas that the operator creates",
        path="spec.routing.serviceName",
        value="fast",
        says="routing.serviceName and routing.servicePort must not be set without targetRef",
    ),
    InvalidSpec(
        why="a port for the Service of replicas that the operator creates",
        path="spec.routing.servicePort",
        value=8000,
        field="spec.routing.serviceName",
        says="routing.serviceName and routing.servicePort must not be set without targetRef",
    ),
    *bounds("spec.replicas", -1, "or equal to 0", 1001, "or equal to 1000"),
    *bounds("spec.routing.maxBodyBytes", 1, "or equal to 1024", 2**40, "or equal to"),
    *bounds("spec.routing.maxInFlight", 0, "or equal to 1", 10**9, "or equal to"),
    *duration_bounds("spec.routing.requestTimeout", "1s", "24h", "999ms", "25h"),
    *duration_bounds("spec.routing.slowStart", "1s", "15m", "0s", "16m"),
    *(
        InvalidSpec(
            why=f"objective {share}",
            path="spec.slo.objective",
            value=share,
            says="slo.objective must be from 0.5 to 0.9999",
        )
        for share in (0, 0.499, 0.99999, 1, 99)
    ),
    InvalidSpec(
        why="a schedule above the maximum",
        path="spec.scaling",
        value={"maxReplicas": 8, "schedules": _scheduled(minReplicas=9)},
        field="spec.scaling.schedules",
        says="minReplicas of each entry in scaling.schedules must be at most scaling.maxReplicas",
    ),
    InvalidSpec(
        why="a schedule above the default maximum",
        path="spec.scaling.schedules",
        value=_scheduled(minReplicas=21),
        says="minReplicas of each entry in scaling.schedules must be at most scaling.maxReplicas",
    ),
    InvalidSpec(
        why="two schedules of one name",
        path="spec.scaling.schedules",
        value=_scheduled(name="office"),
        says="Duplicate value",
        parser_says="entries must differ in name; office occurs more than once",
    ),
    too_many("spec.scaling.schedules", 16, [_OFFICE | {"name": f"floor-{i}"} for i in range(17)]),
    InvalidSpec(
        why="a schedule that ends when it starts",
        path="spec.scaling.schedules",
        value=_scheduled(end=_OFFICE["start"]),
        field="spec.scaling.schedules[1].end",
        says="end must differ from start",
    ),
    *(
        InvalidSpec(
            why=f"a schedule at {cron!r}",
            path="spec.scaling.schedules",
            value=_scheduled(**{field: cron}),
            field=f"spec.scaling.schedules[1].{field}",
            says="should match",
            parser_says=MATCH,
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
        InvalidSpec(
            why=f"a schedule in the zone {zone!r}",
            path="spec.scaling.schedules",
            value=_scheduled(timeZone=zone),
            field="spec.scaling.schedules[1].timeZone",
            says="should match",
            parser_says=MATCH,
        )
        for zone in ("", "../../etc/passwd", "Europe/Berlin ")
    ),
    *(
        InvalidSpec(
            why=f"a schedule without {field}",
            path="spec.scaling.schedules",
            value=[{key: value for key, value in _OFFICE.items() if key != field}],
            field=f"spec.scaling.schedules[0].{field}",
            says="Required value",
            parser_says="is required",
        )
        for field in _OFFICE
    ),
)

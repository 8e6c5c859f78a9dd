"""Specs with an invalid target, or with fields that a target excludes; none may be stored."""

from __future__ import annotations

from typing import Any

from scenarios.specs.spec_cases import (
    ABSENT,
    InvalidSpec,
    missing,
    refused,
)

TARGETED: dict[str, Any] = {
    "runtime": {},
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
    "slo": {"latency": {"target": "250ms"}},
}
"""A spec that scales an existing workload, and nothing else."""


def _targeted(**changes: Any) -> dict[str, Any]:
    target = {k: v for k, v in (TARGETED["targetRef"] | changes).items() if v is not ABSENT}
    return TARGETED | {"targetRef": target}


INVALID_TARGETS: tuple[InvalidSpec, ...] = (
    refused(
        "neither an image nor a target",
        "spec.runtime.image",
        ABSENT,
        "(it scales an existing workload); got neither",
        field="spec.targetRef",
    ),
    refused(
        "an image and a target",
        "spec.targetRef",
        TARGETED["targetRef"],
        "(it scales an existing workload); got both",
    ),
    refused(
        "a target of its own kind",
        "spec",
        _targeted(apiVersion="headroom.dev/v1alpha1", kind="InferenceService"),
        "targetRef must name a workload that runs pods",
        field="spec.targetRef.kind",
    ),
    missing("a target without a name", "spec", _targeted(name=ABSENT), field="spec.targetRef.name"),
    *(
        refused(
            f"a target whose {field} leads elsewhere",
            "spec",
            _targeted(**{field: value}),
            says,
            field=f"spec.targetRef.{field}",
        )
        for field, value, says in (
            (
                "apiVersion",
                "apps/v1/namespaces/other",
                "must be a group and version, such as apps/v1",
            ),
            ("kind", "Deployment/../x", "must be a kind in its own case, such as Deployment"),
            ("name", "../other/llm", "must be the name of the workload, without its kind"),
        )
    ),
    refused(
        "a target at zero replicas",
        "spec",
        TARGETED | {"routing": {"mode": "Gateway"}, "scaling": {"minReplicas": 0}},
        "scaling.minReplicas must be at least 1 with targetRef",
        field="spec.scaling.minReplicas",
    ),
    refused(
        "a name for the Service of replicas that the operator creates",
        "spec.routing.serviceName",
        "fast",
        "routing.serviceName and routing.servicePort must not be set without targetRef",
    ),
    refused(
        "a port for the Service of replicas that the operator creates",
        "spec.routing.servicePort",
        8000,
        "routing.serviceName and routing.servicePort must not be set without targetRef",
        field="spec.routing.serviceName",
    ),
    *(
        refused(
            why,
            "spec",
            TARGETED | change,
            "runtime.args, env, resources, podTemplate, model.uri and rollout must not be set",
            field="spec.targetRef",
        )
        for why, change in (
            ("arguments for pods of a target", {"runtime": {"args": ["--fast"]}}),
            ("a model for pods of a target", {"model": {"uri": "pvc://claim"}}),
            ("a rollout of a target", {"rollout": {"maxSurge": 1}}),
            (
                "pods of a target described in a template",
                {"runtime": {"podTemplate": {"spec": {"containers": []}}}},
            ),
        )
    ),
)

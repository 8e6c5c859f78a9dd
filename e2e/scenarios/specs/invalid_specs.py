"""Specs that must not be stored: each breaks one rule, and the error names field and rule.

The API server and the operator's own parser are held to the same table.
"""

from __future__ import annotations

from scenarios.specs.invalid_pools import INVALID_POOLS
from scenarios.specs.invalid_routing import INVALID_ROUTING
from scenarios.specs.invalid_runtime import INVALID_RUNTIME
from scenarios.specs.invalid_scaling import INVALID_SCALING
from scenarios.specs.invalid_schedules import INVALID_SCHEDULES
from scenarios.specs.invalid_servers import INVALID_SERVERS
from scenarios.specs.invalid_slo import INVALID_SLO
from scenarios.specs.invalid_targets import INVALID_TARGETS
from scenarios.specs.spec_cases import (
    ABSENT,
    InvalidSpec,
    bounds,
    refused,
    too_many,
)

INVALID_SPECS: tuple[InvalidSpec, ...] = (
    *INVALID_SCALING,
    *INVALID_SCHEDULES,
    *INVALID_TARGETS,
    *INVALID_ROUTING,
    *INVALID_RUNTIME,
    *INVALID_SERVERS,
    *INVALID_SLO,
    *INVALID_POOLS,
    refused("no spec", "spec", ABSENT, "Required value", "must be"),
    *bounds("spec.accelerator.count", -1, "or equal to 0", 65, "or equal to 64"),
    *(
        refused(
            f"{field} that the operator sets: {key}",
            f"spec.commonMetadata.{field}",
            {key: "x"},
            f"keys of commonMetadata.{field} must not begin with headroom.dev/",
        )
        for field, key in (
            ("labels", "headroom.dev/inference-service"),
            ("labels", "app.kubernetes.io/managed-by"),
            ("annotations", "headroom.dev/removed-first"),
        )
    ),
    *(
        refused(
            f"key of {field} that is no name: {key}",
            f"spec.commonMetadata.{field}",
            {key: "x"},
            f"keys of commonMetadata.{field} must be names as Kubernetes has them",
        )
        for field, key in (
            ("labels", "cost center"),
            ("labels", "a/b/c"),
            ("labels", "t" * 64),
            ("annotations", "-x"),
        )
    ),
    refused(
        "label whose value no label can have",
        "spec.commonMetadata.labels",
        {"team": "a team"},
        "must be the value of a label",
        field="spec.commonMetadata.labels.team",
    ),
    too_many("spec.commonMetadata.labels", 32, {f"l{i}": "x" for i in range(33)}),
    refused(
        "name too long for its children",
        "metadata.name",
        "n" * 53,
        "metadata.name must have at most 52 characters",
        field="metadata.name",
    ),
    refused(
        "name that no Service can have",
        "metadata.name",
        "7b.chat",
        "metadata.name must have at most 52 characters",
        field="metadata.name",
    ),
)

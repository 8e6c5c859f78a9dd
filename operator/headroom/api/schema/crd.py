"""The CustomResourceDefinition, generated from the typed values."""

from __future__ import annotations

from typing import Any

import yaml

from headroom.api.inference_service import MAX_NAME_LENGTH, NAME_PATTERN, NAME_RULE
from headroom.api.kind import GROUP, KIND, PLURAL, VERSION
from headroom.api.schema.structural_schema import structural_schema
from headroom.api.service_spec.prefill_ref import SELF_CEL, SELF_RULE
from headroom.api.service_spec.spec import Spec
from headroom.api.service_status.status import Status

NAME = f"{PLURAL}.{GROUP}"

_HEADER = "# Generated from operator/headroom/api by `headroom crd`: change the values, not this.\n"

_COLUMNS = (
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', 0, "Takes requests."),
    ("Replicas", "integer", ".status.readyReplicas", 0, "Warm replicas."),
    ("Desired", "integer", ".status.decision.replicas", 0, "Desired replicas."),
    ("Demand", "string", ".status.demand.rate", 0, "Rate that clients want to send."),
    ("Latency", "string", ".status.signals.latency", 0, "Measured latency at the SLO percentile."),
    ("Target", "string", ".spec.slo.latency.target", 0, "Latency target."),
    ("Utilization", "number", ".status.signals.utilization", 0, "Share of throughput."),
    ("SLO", "string", '.status.conditions[?(@.type=="SLOMet")].status', 0, "Latency target met."),
    ("Reason", "string", ".status.reason", 0, "Why it does not serve or scale, or what decided."),
    ("Age", "date", ".metadata.creationTimestamp", 0, ""),
    ("TTFT", "string", ".status.signals.timeToFirstToken", 1, "Measured time to first token."),
    ("TPOT", "string", ".status.signals.timePerOutputToken", 1, "Measured time per output token."),
    ("Binds", "string", ".status.generation.binding", 1, "What bounds a generating replica."),
    ("Min", "integer", ".spec.scaling.minReplicas", 1, ""),
    ("Max", "integer", ".spec.scaling.maxReplicas", 1, ""),
    ("Ceiling", "number", ".spec.slo.utilizationCeiling", 1, "Maximum utilization."),
    ("Warming", "integer", ".status.warmingReplicas", 1, "Starting replicas."),
    ("Unschedulable", "integer", ".status.unschedulableReplicas", 1, "Replicas without a node."),
    ("Broken", "integer", ".status.brokenReplicas", 1, "Replicas that cannot start."),
    ("Mode", "string", ".spec.scaling.mode", 1, ""),
    ("Why", "string", ".status.decision.message", 1, "The last decision as text."),
)  # fmt: skip

_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def custom_resource_definition() -> dict[str, Any]:
    """Generate the manifest."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/part-of": "headroom"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["hisvc"],
                "categories": ["headroom"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, "scale": _SCALE},
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def render_yaml() -> str:
    """Render the manifest of deploy/base/crd.yaml."""
    return _HEADER + yaml.safe_dump(
        custom_resource_definition(), sort_keys=False, width=120, allow_unicode=False
    )


def _column(name: str, kind: str, path: str, priority: int, description: str) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    if description:
        column["description"] = description
    return column | {"priority": priority} if priority else column


def _schema() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A model server with a latency SLO and limits of its scaling.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(Spec),
            "status": structural_schema(Status),
        },
        "x-kubernetes-validations": [
            {
                "rule": f"size(self.metadata.name) <= {MAX_NAME_LENGTH} && "
                f"self.metadata.name.matches('{NAME_PATTERN}')",
                "message": NAME_RULE,
            },
            {"rule": SELF_CEL, "message": SELF_RULE},
        ],
    }

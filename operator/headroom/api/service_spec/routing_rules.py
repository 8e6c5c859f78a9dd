"""Rules between `routing` and `targetRef`: a gateway for an existing workload.

The operator creates a Service of its own for clients, because it changes nothing of the target's.
"""

from __future__ import annotations

from headroom.api.values import Rule

TARGET_ROUTING_RULES = (
    Rule(
        field="routing.serviceName",
        cel="has(self.targetRef) || "
        "!(has(self.routing.serviceName) || has(self.routing.servicePort))",
        holds=lambda spec: (
            spec.target_ref is not None
            or (spec.routing.service_name is None and spec.routing.service_port is None)
        ),
        message="routing.serviceName and routing.servicePort must not be set without targetRef: "
        "the Service has the name of the InferenceService and port 80",
    ),
    # The target's own Services refuse connections at zero replicas, and no gateway learns of it.
    Rule(
        field="scaling.minReplicas",
        cel="!has(self.targetRef) || self.scaling.minReplicas > 0",
        holds=lambda spec: spec.target_ref is None or spec.scaling.min_replicas > 0,
        message="scaling.minReplicas must be at least 1 with targetRef, because clients of the "
        "target's own Service cannot start a replica",
    ),
)
"""Rules of `spec` for a target behind the gateway."""

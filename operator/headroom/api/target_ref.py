"""`spec.targetRef`: a workload that exists, to be scaled and nothing else.

It has no namespace: a service scales what stands beside it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.values import Rule, Value

_GROUP = "headroom.dev/"


class TargetRef(Value):
    """A workload in the same namespace whose replicas are written through its scale subresource."""

    api_version: Annotated[
        str,
        Field(
            max_length=317,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        ),
    ] = "apps/v1"
    """Group and version of its kind."""
    kind: Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")] = "Deployment"
    """Deployment, StatefulSet, or any kind that has a scale subresource."""
    name: Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
    """Its name."""

    rules = (
        Rule(
            field="kind",
            cel=f"!self.apiVersion.startsWith('{_GROUP}')",
            holds=lambda target: not target.api_version.startswith(_GROUP),
            message="targetRef must name a workload that runs pods, not an InferenceService",
        ),
    )

    @property
    def group(self) -> str:
        """The API group; empty for the core's."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    def __str__(self) -> str:
        """Render as kubectl names it."""
        return f"{self.kind} {self.name}"

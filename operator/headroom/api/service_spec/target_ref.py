"""`spec.targetRef`: an existing workload, of which only the replicas are changed.

It has no namespace: a service scales a workload of its own namespace.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value

_GROUP = "headroom.dev/"
_KIND = TextForm("^[A-Z][A-Za-z0-9]*$", "must be a kind in its own case, such as Deployment")
_NAME = TextForm(
    "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    "must be the name of the workload, without its kind and namespace",
)


class TargetRef(Value):
    """Workload in the same namespace, scaled through its scale subresource."""

    api_version: Annotated[
        str,
        Field(max_length=317),
        TextForm(
            "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
            "must be a group and version, such as apps/v1",
        ),
    ] = "apps/v1"
    """API group and version of the workload."""
    kind: Annotated[str, Field(max_length=63), _KIND] = "Deployment"
    """Kind of the workload: Deployment, StatefulSet, or any kind with a scale subresource."""
    name: Annotated[str, Field(max_length=253), _NAME]
    """Name of the workload."""

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

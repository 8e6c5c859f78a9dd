"""`spec.runtime`: environment, resources and pod template, with the field names of Kubernetes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from headroom.api.service_spec.quantities import PlausibleBytes, Quantity
from headroom.api.text_forms import DNS_LABEL, TextForm
from headroom.api.values import MapBy, Rule, Value

Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=253)]
ContainerName = Annotated[str, StringConstraints(max_length=63), DNS_LABEL]


class ObjectKey(Value):
    """One key of a ConfigMap or Secret in the same namespace."""

    name: Name
    key: Key
    optional: bool | None = None


class FieldReference(Value):
    """A field of the pod."""

    api_version: Annotated[str, Field(max_length=63)] | None = None
    field_path: Annotated[str, Field(min_length=1, max_length=512)]


class ResourceReference(Value):
    """A resource of a container."""

    container_name: ContainerName | None = None
    resource: Annotated[str, Field(min_length=1, max_length=317)]
    divisor: Quantity | None = None


class EnvironmentSource(Value):
    """Source of the value of a variable."""

    config_map_key_ref: ObjectKey | None = None
    secret_key_ref: ObjectKey | None = None
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None

    rules = (
        Rule(
            cel="[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.fieldRef), "
            "has(self.resourceFieldRef)].filter(x, x).size() == 1",
            holds=lambda source: len(source.manifest()) == 1,
            message="valueFrom must set exactly one of configMapKeyRef, secretKeyRef, fieldRef and "
            "resourceFieldRef",
        ),
    )


class EnvironmentVariable(Value):
    """Environment variable of the server's container."""

    name: Annotated[
        str,
        Field(max_length=256),
        TextForm(
            "^[-._a-zA-Z][-._a-zA-Z0-9]*$",
            "must be a name of a variable: letters, digits, _, - and ., not starting with a digit",
        ),
    ]
    value: Annotated[str, Field(max_length=32768)] | None = None
    value_from: EnvironmentSource | None = None

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            holds=lambda v: v.value is None or v.value_from is None,
            message="an env entry must not set both value and valueFrom",
        ),
    )


_Amounts = Annotated[dict[str, Quantity], Field(max_length=32), PlausibleBytes()]


class Resources(Value):
    """Compute resources of the server's container; accelerators belong in `spec.accelerator`."""

    limits: _Amounts | None = None
    requests: _Amounts | None = None


class Overlay(Value):
    """Part of a pod template; the schema describes only the fields that the merge needs."""

    model_config = ConfigDict(extra="allow")


class NamedOverlay(Overlay):
    """Entry that is merged into the generated entry of the same name, or added."""

    name: ContainerName


_Named = Annotated[tuple[NamedOverlay, ...], Field(max_length=32, strict=False), MapBy("name")]


class PodSpecOverlay(Overlay):
    """PodSpec that is merged into the generated one."""

    containers: _Named | None = None
    """Merged by name; the generated container is named `server`."""
    init_containers: _Named | None = None
    """Merged by name."""
    volumes: _Named | None = None
    """Merged by name; `tmp` and `model` belong to the operator."""


class PodMetadata(Value):
    """Labels and annotations that are added to each pod."""

    labels: (
        Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None
    ) = None
    annotations: (
        Annotated[dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=64)] | None
    ) = None


class PodTemplate(Value):
    """Pod template that is merged into the generated one."""

    metadata: PodMetadata | None = None
    """Added to the generated metadata; labels of the selector cannot be changed."""
    spec: PodSpecOverlay | None = None
    """Maps are merged; containers, volumes and env are merged by name, mounts by path, ports by
    name or else by number; other lists replace the generated ones; null removes a field
    (client-side `kubectl apply` drops nulls: use --server-side)."""

    def overlay(self) -> dict[str, Any]:
        """Return only what the user wrote, with explicit nulls, which remove fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

"""`spec.runtime`: what runs in a replica, in Kubernetes' own words where it has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    field_serializer,
)
from pydantic_core import PydanticCustomError

from headroom.api.custom_metrics import CustomMetrics
from headroom.api.values import MapBy, Rule, Value
from headroom.profiles import CUSTOM, PROFILES, Profile

OPERATOR_ENVIRONMENT = (
    "HEADROOM_MODEL_NAME",
    "HEADROOM_MODEL_URI",
    "HEADROOM_PORT",
    "HEADROOM_WARMUP_REQUESTS",
    "HEADROOM_WARMUP_MAX_LATENCY_S",
    "HEADROOM_WARMUP_TIMEOUT_S",
    "HEADROOM_DRAIN_GRACE_S",
    "HEADROOM_DRAIN_DELAY_S",
)
"""Variables that the operator derives from other fields; `runtime.env` may not set them."""

_QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]{1,2})?$"
_MAX_QUANTITY_LENGTH = 32


def _quantity(value: object) -> int | str:
    match value:
        case bool():
            pass
        case int() if 0 <= value < 10**15:
            return value
        case str() if len(value) <= _MAX_QUANTITY_LENGTH and re.fullmatch(_QUANTITY, value):
            return value
    raise PydanticCustomError("quantity", "must be a quantity from 0, such as 2, 500m or 4Gi")


Quantity = Annotated[
    int | str,
    PlainValidator(_quantity),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "maximum": 10**15 - 1,
            "pattern": _QUANTITY,
            "maxLength": _MAX_QUANTITY_LENGTH,
        }
    ),
]
"""An amount of a resource, as Kubernetes reads it."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=253)]
ContainerName = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]


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
    """Where the value of a variable comes from."""

    config_map_key_ref: ObjectKey | None = None
    secret_key_ref: ObjectKey | None = None
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None

    rules = (
        Rule(
            cel="[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.fieldRef), "
            "has(self.resourceFieldRef)].filter(x, x).size() == 1",
            holds=lambda source: len(source.manifest()) == 1,
            message="valueFrom needs exactly one of configMapKeyRef, secretKeyRef, fieldRef, "
            "resourceFieldRef",
        ),
    )


class EnvironmentVariable(Value):
    """A variable of the server's container."""

    name: Annotated[str, Field(max_length=256, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")]
    value: Annotated[str, Field(max_length=32768)] | None = None
    value_from: EnvironmentSource | None = None

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            holds=lambda v: v.value is None or v.value_from is None,
            message="an env entry has value or valueFrom, not both",
        ),
    )


class Resources(Value):
    """Compute resources of the server's container; accelerators belong in `spec.accelerator`."""

    limits: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    requests: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None


class Overlay(Value):
    """A part of a pod template of which only what the merge needs is described here."""

    model_config = ConfigDict(extra="allow")


class NamedOverlay(Overlay):
    """An entry that is merged into the generated one of the same name, or added."""

    name: ContainerName


_Named = Annotated[tuple[NamedOverlay, ...], Field(max_length=32, strict=False), MapBy("name")]


class PodSpecOverlay(Overlay):
    """A PodSpec laid over the generated one."""

    containers: _Named | None = None
    """Merged by name; the container that the operator generates is called `server`."""
    init_containers: _Named | None = None
    """Merged by name."""
    volumes: _Named | None = None
    """Merged by name; `tmp` and `model` are the operator's."""


class PodMetadata(Value):
    """Labels and annotations added to each pod."""

    labels: (
        Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] | None
    ) = None
    annotations: (
        Annotated[dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=64)] | None
    ) = None


class PodTemplate(Value):
    """A pod template laid over the generated one."""

    metadata: PodMetadata | None = None
    """Added to the generated metadata; labels of the selector cannot be changed."""
    spec: PodSpecOverlay | None = None
    """Maps merge; containers, volumes, env, ports and mounts merge by name; other lists replace;
    null removes
    (client-side `kubectl apply` drops nulls: use --server-side)."""

    def overlay(self) -> dict[str, Any]:
        """Give what the user wrote and nothing else; an explicit null stays, since it removes."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _port_of(given: Mapping[str, Any]) -> int:
    """A `custom` server has no port of its own, and a profile that is none is refused elsewhere."""
    profile = PROFILES.get(str(given.get("profile")))
    return profile.port if profile is not None else DEFAULT_PORT


DEFAULT_PORT = 8000
WITHOUT_WARMUP = (
    *(name for name, one in PROFILES.items() if one.warmup is None and name != "headroom"),
    CUSTOM,
)
"""Profiles that know no request which every model of theirs answers."""


class Runtime(Value):
    """What runs in a replica."""

    profile: Literal[
        "headroom",
        "triton",
        "vllm",
        "sglang",
        "tgi",
        "tei",
        "ray",
        "mlserver",
        "torchserve",
        "mosec",
        "custom",
    ] = "headroom"
    """How the server is probed and measured; `headroom` is the model server of this project,
    `custom` one whose metrics are named here."""
    image: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[!-~]+$")] | None = None
    """Container image of the model server; without it spec.targetRef says what runs."""
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default_factory=_port_of)
    """Port on which the server listens for HTTP; without it the profile's (8000 for headroom)."""
    metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of its metrics, where it is neither the profile's nor the one above."""
    max_batch_size: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Most requests that the server executes together, as it is set up; needed for every profile
    but headroom, whose server says it."""
    instances: Annotated[int, Field(ge=1, le=256)] = 1
    """Batches that one replica executes side by side."""
    metrics: CustomMetrics | None = None
    """What a server of the profile custom exposes."""
    args: Annotated[
        tuple[Annotated[str, Field(max_length=4096)], ...],
        Field(max_length=128, strict=False, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Arguments of the server's container."""
    env: Annotated[
        tuple[EnvironmentVariable, ...], Field(max_length=64, strict=False), MapBy("name")
    ] = ()
    """Environment of the server's container; what the operator derives from other fields cannot be
    set here."""
    resources: Resources = Resources()
    """Compute resources of the server's container; accelerators belong in `spec.accelerator`."""
    pod_template: PodTemplate = PodTemplate()
    """Laid over the generated pod template: nodeSelector, tolerations, volumes, sidecars."""

    @property
    def describes_pods(self) -> bool:
        """Whether it says anything about pods that the operator makes."""
        return bool(
            self.args or self.env or self.resources.manifest() or self.pod_template.overlay()
        )

    @field_serializer("pod_template")
    def _written(self, template: PodTemplate) -> dict[str, Any]:
        return template.overlay()

    @property
    def server(self) -> Profile:
        """How the server is probed and measured."""
        if self.metrics is not None:
            return self.metrics.to_profile(self.port)
        return PROFILES[self.profile]

    @property
    def scrape_port(self) -> int:
        """Where its metrics are read."""
        return self.metrics_port or self.server.metrics_port or self.port

    rules = (
        Rule(
            field="metrics",
            cel="(self.profile == 'custom') == has(self.metrics)",
            holds=lambda runtime: (runtime.profile == "custom") == (runtime.metrics is not None),
            message="runtime needs metrics where its profile is custom, and there only",
        ),
        Rule(
            field="maxBatchSize",
            cel="(self.profile == 'headroom') != has(self.maxBatchSize)",
            holds=lambda runtime: (
                (runtime.profile == "headroom") != (runtime.max_batch_size is not None)
            ),
            message="runtime needs maxBatchSize for every profile but headroom, whose server "
            "says it: give the most requests that the server executes together",
        ),
        Rule(
            field="env",
            cel=f"!self.env.exists(e, e.name in {list(OPERATOR_ENVIRONMENT)})",
            holds=lambda runtime: not any(e.name in OPERATOR_ENVIRONMENT for e in runtime.env),
            message="env must not set variables that the operator derives from other fields: "
            + ", ".join(OPERATOR_ENVIRONMENT),
        ),
    )

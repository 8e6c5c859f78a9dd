"""`spec.runtime`: the model server of each replica, with the field names of Kubernetes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
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
"""Variables that the operator derives from other fields; `runtime.env` must not set them."""

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
    raise PydanticCustomError(
        "quantity", "must be a quantity of at least 0, such as 2, 500m or 4Gi"
    )


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
"""An amount of a resource in the notation of Kubernetes."""

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

    name: Annotated[str, Field(max_length=256, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")]
    value: Annotated[str, Field(max_length=32768)] | None = None
    value_from: EnvironmentSource | None = None

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            holds=lambda v: v.value is None or v.value_from is None,
            message="an env entry must not set both value and valueFrom",
        ),
    )


class Resources(Value):
    """Compute resources of the server's container; accelerators belong in `spec.accelerator`."""

    limits: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None
    requests: Annotated[dict[str, Quantity], Field(max_length=32)] | None = None


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


MOST_LEVELS = 64
"""Of objects and lists in a pod template: Kubernetes itself has a dozen."""


def _written_plainly(value: object) -> object:
    """Refuse what no manifest can contain, although the schema preserves unknown fields."""
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[object] = []
        for one in level:
            if isinstance(one, Mapping):
                inner += (*one.keys(), *one.values())
            elif isinstance(one, list | tuple):
                inner += one
            elif not _is_plain(one):
                raise PydanticCustomError("plain", "must contain only texts, numbers and booleans")
        if not inner:
            return value
        level = inner
    raise PydanticCustomError(
        "levels", "must have at most {most} levels of objects and lists", {"most": MOST_LEVELS}
    )


def _is_plain(value: object) -> bool:
    """Return whether JSON has this value: a text of Unicode characters, a finite number."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, int):
        return abs(value) < 2**64
    return not isinstance(value, float) or math.isfinite(value)


def _port_of(given: Mapping[str, Any]) -> int:
    """Return the profile's port; `custom` has none, and the schema rejects unknown profiles."""
    profile = PROFILES.get(str(given.get("profile")))
    return profile.port if profile is not None else DEFAULT_PORT


DEFAULT_PORT = 8000
WITHOUT_WARMUP = (
    *(name for name, one in PROFILES.items() if one.warmup is None and name != "headroom"),
    CUSTOM,
)
"""Profiles without a request that every model of the server can answer."""


class Runtime(Value):
    """Model server that runs in each replica."""

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
        "trtllm",
        "llamacpp",
        "dynamo",
        "custom",
    ] = "headroom"
    """Model server: decides probes and metrics. `headroom` is the model server of this project;
    `custom` is any server whose metrics are named in `metrics`."""
    image: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[!-~]+$")] | None = None
    """Container image of the model server; leave it out with spec.targetRef."""
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default_factory=_port_of)
    """Port on which the server listens for HTTP. Default: the profile's (8000 for headroom)."""
    metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the metrics. Default: the profile's metrics port, else port."""
    max_batch_size: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Maximum batch size that the server is configured with. Required for every profile except
    headroom, whose server reports it."""
    instances: Annotated[int, Field(ge=1, le=256)] = 1
    """Batches that one replica executes at the same time."""
    metrics: CustomMetrics | None = None
    """Metrics of the server, where profile is custom."""
    args: Annotated[
        tuple[Annotated[str, Field(max_length=4096)], ...],
        Field(max_length=128, strict=False, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Arguments of the server's container."""
    env: Annotated[
        tuple[EnvironmentVariable, ...], Field(max_length=64, strict=False), MapBy("name")
    ] = ()
    """Environment of the server's container; variables that the operator derives from other fields
    must not be set here."""
    resources: Resources = Resources()
    """Compute resources of the server's container; accelerators belong in `spec.accelerator`."""
    pod_template: Annotated[PodTemplate, BeforeValidator(_written_plainly)] = PodTemplate()
    """Merged into the generated pod template: nodeSelector, tolerations, volumes, sidecars."""

    @property
    def describes_pods(self) -> bool:
        """Whether any field applies to pods that the operator creates."""
        return bool(
            self.args or self.env or self.resources.manifest() or self.pod_template.overlay()
        )

    @field_serializer("pod_template")
    def _written(self, template: PodTemplate) -> dict[str, Any]:
        return template.overlay()

    @property
    def server(self) -> Profile:
        """The profile: how the server is probed and measured."""
        if self.metrics is not None:
            return self.metrics.to_profile(self.port)
        return PROFILES[self.profile]

    def scrape_port(self, port: int) -> int:
        """Return the port at which the metrics of a server are read that serves at `port`."""
        return self.metrics_port or self.server.metrics_port or port

    rules = (
        Rule(
            field="metrics",
            cel="(self.profile == 'custom') == has(self.metrics)",
            holds=lambda runtime: (runtime.profile == "custom") == (runtime.metrics is not None),
            message="runtime.metrics must be set where runtime.profile is custom, and only there",
        ),
        Rule(
            field="maxBatchSize",
            cel="(self.profile == 'headroom') != has(self.maxBatchSize)",
            holds=lambda runtime: (
                (runtime.profile == "headroom") != (runtime.max_batch_size is not None)
            ),
            message="runtime.maxBatchSize must be set for every profile except headroom, whose "
            "server reports it",
        ),
        Rule(
            field="env",
            cel=f"!self.env.exists(e, e.name in {list(OPERATOR_ENVIRONMENT)})",
            holds=lambda runtime: not any(e.name in OPERATOR_ENVIRONMENT for e in runtime.env),
            message="env must not set variables that the operator derives from other fields: "
            + ", ".join(OPERATOR_ENVIRONMENT),
        ),
    )

"""`spec.runtime`: the model server of each replica, with the field names of Kubernetes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_serializer
from pydantic_core import PydanticCustomError

from headroom.api.service_spec.custom_metrics import CustomMetrics
from headroom.api.service_spec.pod_template import EnvironmentVariable, PodTemplate, Resources
from headroom.api.service_spec.quantities import AT_LEAST, tiny_in
from headroom.api.template_size import MOST_VALUES, is_small
from headroom.api.text_forms import TextForm
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


MOST_LEVELS = 64
"""Depth of objects and lists in a pod template: Kubernetes itself has a dozen."""


def _written_plainly(value: object) -> object:
    """Refuse what no manifest can contain, although the schema preserves unknown fields."""
    if not is_small(value):
        words, most = "must have at most {most} values", {"most": MOST_VALUES}
        raise PydanticCustomError("values", words, most)
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[object] = []
        for one in level:
            if isinstance(one, Mapping):
                inner += (*one.keys(), *one.values())
            elif isinstance(one, list | tuple):
                inner += one
            elif not _is_plain(one):
                raise PydanticCustomError(
                    "plain", "must contain only strings, numbers and booleans"
                )
        if not inner:
            return value
        level = inner
    raise PydanticCustomError(
        "levels", "must have at most {most} levels of objects and lists", {"most": MOST_LEVELS}
    )


def _with_plausible_bytes(template: PodTemplate) -> PodTemplate:
    """Refuse implausible bytes of a container, as `runtime.resources` does."""
    spec = template.spec
    for container in (*(spec.containers or ()), *(spec.init_containers or ())) if spec else ():
        resources = (container.model_extra or {}).get("resources")
        if not isinstance(resources, Mapping):
            continue
        for which in ("limits", "requests"):
            if name := tiny_in(resources.get(which)):
                where = f"{container.name}: resources.{which}.{name}"
                raise PydanticCustomError(
                    "bytes", "container {where} {rule}", {"where": where, "rule": AT_LEAST}
                )
    return template


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


_IMAGE = TextForm(
    "^[!-~]+$", "must be the name of an image without spaces, such as registry.example/server:1.0"
)
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
    image: Annotated[str, Field(min_length=1, max_length=512), _IMAGE] | None = None
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
    pod_template: Annotated[
        PodTemplate, BeforeValidator(_written_plainly), AfterValidator(_with_plausible_bytes)
    ] = PodTemplate()
    """Merged into the generated pod template: nodeSelector, tolerations, volumes, sidecars."""

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
            message="runtime.maxBatchSize must be set for every profile except headroom, and must "
            "not be set for headroom, whose server reports it",
            got=lambda runtime: f"{runtime.max_batch_size or 'none'} for {runtime.profile}",
            got_cel="(has(self.maxBatchSize) ? 'a number' : 'none') + ' for ' + self.profile",
        ),
        Rule(
            field="env",
            cel=f"!self.env.exists(e, e.name in {list(OPERATOR_ENVIRONMENT)})",
            holds=lambda runtime: not any(e.name in OPERATOR_ENVIRONMENT for e in runtime.env),
            message="env must not set variables that the operator derives from other fields: "
            + ", ".join(OPERATOR_ENVIRONMENT),
        ),
    )

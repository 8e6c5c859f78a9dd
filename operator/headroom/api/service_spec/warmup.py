"""`spec.warmup`: the warm-up that a replica must pass before it takes requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.custom_metrics import Path
from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value, Within

Latency = Annotated[Duration, Within("1ms", "10m")]


class WarmupRequest(Value):
    """Request that the model can answer, sent by POST."""

    path: Path
    """Path of inference requests, such as /inference or /v1/completions."""
    body: Annotated[str, Field(max_length=65536)] = ""
    """Body of the request."""
    content_type: Annotated[
        str,
        Field(min_length=1, max_length=128),
        TextForm("^[!-~]+(; ?[!-~]+)?$", "must be a content type, such as application/json"),
    ] = "application/json"
    """Content type of the body."""


class Warmup(Value):
    """Warm-up that a replica must pass before it takes requests."""

    sender: Literal["Server", "Operator"] | None = None
    """Sender of the warm-up requests: the model server itself, or the operator for servers that
    cannot. Default: Operator if request is set, else Server. Pods that the operator warms up have
    the readiness gate headroom.dev/warm: without a running operator no new pod becomes ready, and
    ready pods stay ready."""
    request: WarmupRequest | None = None
    """Request that the operator sends. Default: the one that the profile defines (triton, mlserver,
    vllm, sglang, tgi, tei)."""
    requests: Annotated[int, Field(ge=1, le=1000)] = 16
    """Number of warm-up requests."""
    max_latency: Latency | None = None
    """Maximum latency of the warm-up requests. Default: slo.latency.target; without it
    10m, or less where both token SLOs allow less for 1000 tokens."""
    timeout: Annotated[Duration, Within("1s", "24h")] = Duration.parse("10m")
    """Maximum time from the start of the container until the replica is warm."""

    @property
    def by_operator(self) -> bool:
        """Whether the operator sends the warm-up requests."""
        return self.sender == "Operator" or (self.sender is None and self.request is not None)

    rules = (
        Rule(
            field="request",
            cel="!has(self.request) || !has(self.sender) || self.sender == 'Operator'",
            holds=lambda warmup: warmup.request is None or warmup.sender in (None, "Operator"),
            message="warmup.sender must be Operator, or unset, where warmup.request is set",
        ),
    )

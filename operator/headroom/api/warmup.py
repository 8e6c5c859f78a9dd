"""`spec.warmup`: what a replica must show before it takes requests, and who has it show that."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.custom_metrics import Path
from headroom.api.durations import Duration
from headroom.api.values import Rule, Value, Within

Latency = Annotated[Duration, Within("1ms", "10m")]


class WarmupRequest(Value):
    """A request that the model answers, sent by POST."""

    path: Path
    """Where requests for predictions go, such as /inference or /v1/completions."""
    body: Annotated[str, Field(max_length=65536)] = ""
    """What is sent."""
    content_type: Annotated[
        str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+(; ?[!-~]+)?$")
    ] = "application/json"
    """What the body is."""


class Warmup(Value):
    """What a replica must show before it takes requests."""

    sender: Literal["Server", "Operator"] | None = None
    """Who sends them: Server is the model server itself, Operator for servers that cannot. Without
    it the operator, where a request is given, else the server. Pods whose warm-up is the operator's
    have the readiness gate headroom.dev/warm, so while no operator runs none of them becomes ready;
    those that are stay so."""
    request: WarmupRequest | None = None
    """What the operator sends; without it what the profile says, where it does (triton, mlserver,
    vllm, sglang, tgi, tei)."""
    requests: Annotated[int, Field(ge=1, le=1000)] = 16
    """Self-test requests."""
    max_latency: Latency | None = None
    """Slowest self-test request that counts as warm; without it slo.latency.target."""
    timeout: Annotated[Duration, Within("1s", "24h")] = Duration.parse("10m")
    """Time from the start of the container within which a replica must be warm."""

    @property
    def by_operator(self) -> bool:
        """Whether the operator sends them."""
        return self.sender == "Operator" or (self.sender is None and self.request is not None)

    rules = (
        Rule(
            field="request",
            cel="!has(self.request) || !has(self.sender) || self.sender == 'Operator'",
            holds=lambda warmup: warmup.request is None or warmup.sender in (None, "Operator"),
            message="warmup.request needs warmup.sender Operator: leave one of them out",
        ),
    )

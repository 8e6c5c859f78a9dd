"""Specs with invalid routing, activation or tenants; none may be stored."""

from __future__ import annotations

from scenarios.spec_cases import MATCH, InvalidSpec, bounds, duration_bounds, too_many

INVALID_ROUTING: tuple[InvalidSpec, ...] = (
    InvalidSpec(
        why="shares of more than everything",
        path="spec.routing.traffic",
        value=[{"service": "canary", "percent": 60}, {"service": "other", "percent": 41}],
        says="the percentages in routing.traffic must sum to at most 100",
    ),
    *bounds("spec.routing.grpcPort", 0, "or equal to 1", 65536, "or equal to 65535"),
    InvalidSpec(
        why="a header with a line end",
        path="spec.routing.tenants",
        value={"header": "x-tenant\r\nx", "requestsPerSecond": 5},
        field="spec.routing.tenants.header",
        says="should match",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="tenants without a limit",
        path="spec.routing.tenants",
        value={"header": "x-tenant"},
        says="routing.tenants must set requestsPerSecond, inFlightPercent or both",
    ),
    InvalidSpec(
        why="a burst beyond no rate",
        path="spec.routing.tenants",
        value={"inFlightPercent": 25, "burst": 5},
        field="spec.routing.tenants.burst",
        says="routing.tenants.requestsPerSecond must be set with burst",
    ),
    InvalidSpec(
        why="a network that is none",
        path="spec.routing.trustedCIDRs",
        value=["10.0.0.0/33"],
        field="spec.routing.trustedCIDRs[0]",
        says="should match",
        parser_says=MATCH,
    ),
    InvalidSpec(
        why="tokens with two sets of keys",
        path="spec.routing.jwt",
        value={
            "issuer": "https://issuer.example",
            "localJWKS": f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{"x" * 43}"}}]}}',
            "remoteJWKS": {"service": "issuer"},
        },
        says="routing.jwt must set exactly one of localJWKS and remoteJWKS",
    ),
    InvalidSpec(
        why="tokens without keys",
        path="spec.routing.jwt",
        value={"issuer": "https://issuer.example"},
        says="routing.jwt must set exactly one of localJWKS and remoteJWKS",
    ),
    *duration_bounds("spec.routing.hedging.after", "10ms", "10m", "9ms", "11m"),
    InvalidSpec(
        why="a best-effort class with a promise",
        path="spec.routing.classes",
        value=[{"name": "batch", "bestEffort": True, "latency": {"target": "9s"}}],
        field="spec.routing.classes[0].bestEffort",
        says="bestEffort must be false where timeToFirstToken, timePerOutputToken or latency",
    ),
    InvalidSpec(
        why="a class with a promise on tokens in a service without one",
        path="spec.routing.classes",
        value=[{"name": "chat", "timeToFirstToken": {"target": "500ms"}}],
        says="slo must set timeToFirstToken or timePerOutputToken where an entry in",
    ),
    too_many("spec.routing.classes", 8, [{"name": f"class-{each}"} for each in range(9)]),
    too_many(
        "spec.routing.models",
        16,
        [{"model": f"m{each}", "service": "other"} for each in range(17)],
    ),
)

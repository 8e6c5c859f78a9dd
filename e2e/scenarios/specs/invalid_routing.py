"""Specs with invalid routing, activation or tenants; none may be stored."""

from __future__ import annotations

from scenarios.specs.spec_cases import (
    InvalidSpec,
    bounds,
    duration_bounds,
    refused,
    too_many,
)

INVALID_ROUTING: tuple[InvalidSpec, ...] = (
    refused(
        "shares of more than everything",
        "spec.routing.traffic",
        [{"service": "canary", "percent": 60}, {"service": "other", "percent": 41}],
        "the percentages in routing.traffic must sum to at most 100",
    ),
    *bounds("spec.routing.grpcPort", 0, "or equal to 1", 65536, "or equal to 65535"),
    refused(
        "a header with a line end",
        "spec.routing.tenants",
        {"header": "x-tenant\r\nx", "requestsPerSecond": 5},
        "must be a header in lower-case letters",
        field="spec.routing.tenants.header",
    ),
    refused(
        "tenants without a limit",
        "spec.routing.tenants",
        {"header": "x-tenant"},
        "routing.tenants must set requestsPerSecond, inFlightPercent or both",
    ),
    refused(
        "a burst beyond no rate",
        "spec.routing.tenants",
        {"inFlightPercent": 25, "burst": 5},
        "routing.tenants.requestsPerSecond must be set with burst",
        field="spec.routing.tenants.burst",
    ),
    refused(
        "a network that is none",
        "spec.routing.trustedCIDRs",
        ["10.0.0.0/33"],
        "must be an IPv4 network, such as 10.0.0.0/8",
        field="spec.routing.trustedCIDRs[0]",
    ),
    refused(
        "tokens with two sets of keys",
        "spec.routing.jwt",
        {
            "issuer": "https://issuer.example",
            "localJWKS": f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{"x" * 43}"}}]}}',
            "remoteJWKS": {"service": "issuer"},
        },
        "routing.jwt must set exactly one of localJWKS and remoteJWKS",
    ),
    refused(
        "tokens without keys",
        "spec.routing.jwt",
        {"issuer": "https://issuer.example"},
        "routing.jwt must set exactly one of localJWKS and remoteJWKS",
    ),
    *duration_bounds("spec.routing.hedging.after", "10ms", "10m", "9ms", "11m"),
    refused(
        "a best-effort class with a promise",
        "spec.routing.classes",
        [{"name": "batch", "bestEffort": True, "latency": {"target": "9s"}}],
        "bestEffort must be false where timeToFirstToken, timePerOutputToken or latency",
        field="spec.routing.classes[0].bestEffort",
    ),
    refused(
        "a class with a promise on tokens in a service without one",
        "spec.routing.classes",
        [{"name": "chat", "timeToFirstToken": {"target": "500ms"}}],
        "slo must set timeToFirstToken or timePerOutputToken where an entry in",
    ),
    too_many("spec.routing.classes", 8, [{"name": f"class-{each}"} for each in range(9)]),
    too_many(
        "spec.routing.models",
        16,
        [{"model": f"m{each}", "service": "other"} for each in range(17)],
    ),
    *bounds("spec.routing.maxBodyBytes", 1, "or equal to 1024", 2**40, "or equal to"),
    *bounds("spec.routing.maxInFlight", 0, "or equal to 1", 10**9, "or equal to"),
    *duration_bounds("spec.routing.requestTimeout", "1s", "24h", "999ms", "25h"),
    *duration_bounds("spec.routing.slowStart", "1s", "15m", "0s", "16m"),
)

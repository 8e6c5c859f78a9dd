"""`spec.routing.jwt`: tokens of clients that the gateway verifies."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from headroom.api.service_spec.traffic import ServiceName
from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value

PRIVATE = frozenset({"d", "k"})
"""Members of a key that only its owner may know (RFC 7518: of EC, RSA and OKP keys, and of oct)."""
MOST_KEYS = 8
MOST_SLOW_KEYS = 2
SLOW_CURVES = ("P-384", "P-521")
MOST_MODULUS_CHARACTERS = 704
"""A token that names no key is tried with each, on a thread of the gateway that all services share:
0.03 ms for P-256, Ed25519 and RSA up to 4096 bits (683 characters in base64), 0.4 ms for P-521. Two
slow ones are one that signs, and the one before or after it. `gateway/key_sets.py` takes no more of
fetched sets."""


def _is_public_key_set(text: str) -> str:
    """Accept a set of public keys, because every reader of the resource sees it."""
    try:
        keys = json.loads(text)["keys"]
        is_set = bool(keys) and all(isinstance(one["kty"], str) for one in keys)
    except (ValueError, TypeError, KeyError, RecursionError):
        is_set = False
    if not is_set:
        raise PydanticCustomError(
            "jwks", "must be a JSON Web Key Set with at least one key, as the issuer serves it"
        )
    if len(keys) > MOST_KEYS:
        raise PydanticCustomError("jwks", "must be a JSON Web Key Set with at most 8 keys")
    if sum(one.get("crv") in SLOW_CURVES for one in keys) > MOST_SLOW_KEYS:
        raise PydanticCustomError("jwks", "must have at most 2 keys of P-384 and P-521")
    if any(len(str(one.get("n", ""))) > MOST_MODULUS_CHARACTERS for one in keys):
        raise PydanticCustomError("jwks", "must have keys of RSA with at most 4096 bits")
    if any(PRIVATE & set(one) for one in keys):
        raise PydanticCustomError(
            "jwks", "must have public keys only; got one with a private member (d or k)"
        )
    if not any(map(_is_usable, keys)):
        raise PydanticCustomError(
            "jwks", "must have a complete key of RSA, Ed25519, P-256, P-384 or P-521; got none"
        )
    return text


_ALGORITHMS = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
}
"""Members of each type and curve that gateways verify."""
_SIZES = {"P-256": (32,), "P-384": (48,), "P-521": (66,), "Ed25519": (32,)}
"""Bytes of a coordinate."""


def _is_usable(key: dict[str, Any]) -> bool:
    """Return whether gateways verify with the key; a set without such a key is refused."""
    kind = key["kty"]
    curve = None if kind == "RSA" else str(key.get("crv", "P-256"))
    algorithms = _ALGORITHMS.get((kind, curve), ())
    members = {"EC": "xy", "OKP": "x", "RSA": "ne"}.get(kind, "")
    sizes = range(1, 513) if curve is None else _SIZES.get(curve, ())
    complete = all(_size(key.get(member)) in sizes for member in members)
    return complete and bool(algorithms) and key.get("alg", algorithms[0]) in algorithms


def _size(value: object) -> int:
    """Return the bytes of a value in base64url without padding; 0 if it is none."""
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z0-9_-]+", value):
        return 0
    return len(value) * 6 // 8


_KEYS_PATH = TextForm(
    "^/[-A-Za-z0-9._~/]*$", "must be a path that starts with /, without query and escapes"
)
_CLAIM = TextForm(
    r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
    "must be names of letters, digits, _ and -, separated by dots, such as sub",
)


class RemoteJwks(Value):
    """Service of the InferenceService's namespace that serves a JSON Web Key Set over HTTP."""

    service: ServiceName
    """Name of the Service."""
    port: Annotated[int, Field(ge=1, le=65535)] = 80
    """Port of the Service."""
    path: Annotated[str, Field(max_length=256), _KEYS_PATH] = "/jwks"
    """Path of the key set, of at most 8 KiB and the keys that localJWKS may have. Gateways read it
    every five minutes."""


class Jwt(Value):
    """JSON Web Tokens in the header authorization, which the gateway verifies and removes.

    A request with an invalid or expired token, or without one, gets 401; one with a token for
    another audience 403.
    """

    issuer: Annotated[str, Field(min_length=1, max_length=256)]
    """Claim iss of the tokens."""
    audiences: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256)], ...],
        Field(max_length=8, strict=False),
    ] = ()
    """Accepted claims aud. Default: any, so also tokens that were issued for other services."""
    tenant_claim: Annotated[str, Field(max_length=128), _CLAIM] = "sub"
    """Claim that names the tenant; dots separate the names of nested claims. The replicas receive
    it as x-tenant."""
    local_jwks: Annotated[
        Annotated[str, Field(max_length=16_384), AfterValidator(_is_public_key_set)] | None,
        Field(alias="localJWKS"),
    ] = None
    """The issuer's public keys as a JSON Web Key Set: at most 8, of which 2 of P-384 and P-521, and
    RSA up to 4096 bits."""
    remote_jwks: Annotated[RemoteJwks | None, Field(alias="remoteJWKS")] = None
    """Service that serves them."""
    optional: bool = False
    """Whether a request without a token is accepted, as one of an unknown client."""

    rules = (
        Rule(
            cel="has(self.localJWKS) != has(self.remoteJWKS)",
            holds=lambda one: (one.local_jwks is None) != (one.remote_jwks is None),
            message="routing.jwt must set exactly one of localJWKS and remoteJWKS",
        ),
    )

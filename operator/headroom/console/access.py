"""Access to the console: by loopback address, or by bearer token.

On a loopback address, which `kubectl port-forward` reaches, permission to forward is permission to
view; the Host header must be a loopback name too, so that pages of other sites cannot send
requests through the user's browser. On any other address the API server authenticates the token
(TokenReview) and authorizes the user to get InferenceServices (SubjectAccessReview). There is no
cookie that other sites could make a browser send.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from headroom.api.kind import GROUP, PLURAL
from headroom.bounded_reviews import BoundedReviews, TooManyReviewsError
from headroom.errors import ClusterError

LONGEST_TOKEN = 8_000
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on a request: allowed, or the HTTP status and the next step."""

    status: int
    message: str = ""

    @property
    def allows(self) -> bool:
        """Return whether the request is allowed."""
        return self.status == 200


ALLOWED = Verdict(status=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """The parts of a request that access depends on."""

    host: str
    authorization: str
    namespace: str | None
    """The requested namespace; None is all."""
    peer: str = ""
    """The address that the request comes from."""


class Guard(Protocol):
    """Authorizes each request."""

    async def judge(self, request: AccessRequest) -> Verdict:
        """Return whether the request is allowed, and why not."""
        ...


class Reviewer(Protocol):
    """The API server's reviews."""

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST a review, and return it with its verdict; raise ClusterError."""
        ...


class LoopbackOnly:
    """Allows requests for a loopback name."""

    async def judge(self, request: AccessRequest) -> Verdict:
        """Reject other host names: they resolve to this address only by DNS rebinding."""
        host = request.host.rpartition(":")[0] if _has_port(request.host) else request.host
        if host in LOOPBACK:
            return ALLOWED
        return Verdict(status=421, message=f"use http://localhost, not {request.host[:80]}")


class TokenReviewed:
    """Allows tokens of users who may get InferenceServices."""

    def __init__(self, reviewer: Reviewer, now_s: Callable[[], float]) -> None:
        self._reviewer = reviewer
        self._reviews: BoundedReviews[Verdict] = BoundedReviews(now_s, lambda one: one.allows)

    async def judge(self, request: AccessRequest) -> Verdict:
        """Review the token for the namespace, or use the cached review."""
        scheme, _, token = request.authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
            return Verdict(
                status=401,
                message="send Authorization: Bearer TOKEN, such as from kubectl create token, or "
                "use kubectl port-forward to the loopback port",
            )
        # A digest, never the token itself.
        digest = hashlib.sha256(f"{request.namespace!r} {token}".encode()).digest()
        try:
            return await self._reviews.verdict(
                digest, request.peer, partial(self._reviewed, token, request.namespace)
            )
        except TooManyReviewsError as error:
            return Verdict(status=429, message=f"{error}; try again in a second")
        except ClusterError as error:
            return Verdict(status=503, message=f"the token could not be reviewed: {error}")

    async def _reviewed(self, token: str, namespace: str | None) -> Verdict:
        found = await self._review("authentication.k8s.io/v1", "TokenReview", {"token": token})
        if not found.get("authenticated"):
            return Verdict(status=401, message="the API server rejects this token")
        user = found.get("user") or {}
        attributes = {"group": GROUP, "resource": PLURAL, "verb": "get"}
        if namespace is not None:
            attributes["namespace"] = namespace
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "resourceAttributes": attributes,
        }
        judged = await self._review("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        if judged.get("allowed"):
            return ALLOWED
        where = "in every namespace" if namespace is None else f"in namespace {namespace}"
        hint = "; add ?namespace=NAME for one" if namespace is None else ""
        who = user.get("username", "")
        return Verdict(status=403, message=f"{who} may not get {PLURAL} {where}{hint}")

    async def _review(self, api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": api_version, "kind": kind, "spec": spec}
        answer = await self._reviewer.create(review, field_manager="headroom")
        status = answer.get("status")
        return status if isinstance(status, dict) else {}


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and (host.count(":") == 1 or "]:" in host)

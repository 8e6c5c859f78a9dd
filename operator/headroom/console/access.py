"""Who may see the console: whoever reaches a loopback address, else who brings a token.

On a loopback address, as `kubectl port-forward` reaches it, the right to forward is the right to
look; the Host header must be a loopback name too, so that no other site's page can ask through the
viewer's browser. On any other address the API server says whose the token is (TokenReview) and
whether they may get InferenceServices there (SubjectAccessReview). There is no cookie, so no other
site can make a browser send one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from headroom.api.kind import GROUP, PLURAL
from headroom.errors import ClusterError

KEPT_S = 60.0
"""How long an answer of the API server is good: so long a withdrawn right still shows pages."""
MOST_KEPT = 1024
LONGEST_TOKEN = 8_000
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a request is answered; else the status and what to do."""

    status: int
    message: str = ""

    @property
    def allows(self) -> bool:
        """Whether the request is answered."""
        return self.status == 200


ALLOWED = Verdict(status=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What of a request access depends on."""

    host: str
    authorization: str
    namespace: str | None
    """Of what is asked for; None is every namespace."""


class Guard(Protocol):
    """Decides on each request."""

    async def judge(self, asking: Asking) -> Verdict:
        """Allow it, or say why not."""
        ...


class Reviewer(Protocol):
    """The API server, as far as it judges."""

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST a review, and give it back with its verdict; raise ClusterError."""
        ...


class LoopbackOnly:
    """Lets in whoever asks for a loopback name."""

    async def judge(self, asking: Asking) -> Verdict:
        """Refuse names of other hosts: they lead here only by a forged answer of a DNS."""
        host = asking.host.rpartition(":")[0] if _has_port(asking.host) else asking.host
        if host in LOOPBACK:
            return ALLOWED
        return Verdict(status=421, message=f"ask for http://localhost, not {asking.host[:80]}")


@dataclass(slots=True)
class TokenReviewed:
    """Lets in whose token the API server knows and who may get InferenceServices."""

    reviewer: Reviewer
    now_s: Callable[[], float]
    _known: dict[tuple[bytes, str | None], tuple[float, Verdict]] = field(default_factory=dict)
    """By a digest of the token, never the token, and the namespace."""

    async def judge(self, asking: Asking) -> Verdict:
        """Ask the API server, or remember what it said a moment ago."""
        scheme, _, token = asking.authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
            return Verdict(
                status=401,
                message="send Authorization: Bearer TOKEN, such as one of kubectl create token; or "
                "use kubectl port-forward to the loopback port",
            )
        key = (hashlib.sha256(token.encode()).digest(), asking.namespace)
        known = self._known.get(key)
        if known is not None and 0.0 <= self.now_s() - known[0] < KEPT_S:
            return known[1]
        try:
            verdict = await self._reviewed(token, asking.namespace)
        except ClusterError as error:
            return Verdict(status=503, message=f"the token could not be reviewed: {error}")
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        self._known[key] = (self.now_s(), verdict)
        return verdict

    async def _reviewed(self, token: str, namespace: str | None) -> Verdict:
        found = await self._review("authentication.k8s.io/v1", "TokenReview", {"token": token})
        if not found.get("authenticated"):
            return Verdict(status=401, message="the API server does not know this token")
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
        answer = await self.reviewer.create(review, field_manager="headroom")
        status = answer.get("status")
        return status if isinstance(status, dict) else {}


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and (host.count(":") == 1 or "]:" in host)

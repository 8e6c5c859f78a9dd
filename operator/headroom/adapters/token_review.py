"""Authenticates tokens with TokenReviews, cached for a minute."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Any, Protocol

from headroom.errors import ClusterError

_log = logging.getLogger(__name__)

BELIEVED_S = 60.0
REMEMBERED = 256
MAX_TOKEN_BYTES = 8192


class Creates(Protocol):
    """The part of the API that the review needs."""

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST."""
        ...


class TokenReview:
    """Recognizes tokens of one ServiceAccount and audience."""

    def __init__(self, api: Creates, *, user: str, audience: str) -> None:
        self._api = api
        self._user = user
        self._audience = audience
        self._known: dict[bytes, tuple[bool, float]] = {}
        self._asking = asyncio.Lock()

    async def __call__(self, token: str) -> bool:
        """Return whether the token is the account's; False if the API server is unavailable."""
        if not token or len(token) > MAX_TOKEN_BYTES:
            return False
        digest = hashlib.sha256(token.encode()).digest()
        known = self._fresh(digest)
        if known is not None:
            return known
        async with self._asking:  # a gateway opens several streams at once with one token
            known = self._fresh(digest)
            return await self._ask(token, digest) if known is None else known

    def _fresh(self, digest: bytes) -> bool | None:
        verdict, until_s = self._known.get(digest, (False, 0.0))
        return verdict if asyncio.get_running_loop().time() < until_s else None

    async def _ask(self, token: str, digest: bytes) -> bool:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            status = (await self._api.create(review, field_manager="headroom")).get("status", {})
        except ClusterError as error:
            _log.warning("a token could not be reviewed: %s", error)
            return False
        verdict = (
            status.get("authenticated") is True
            and status.get("user", {}).get("username") == self._user
            and self._audience in status.get("audiences", ())
        )
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[digest] = (verdict, asyncio.get_running_loop().time() + BELIEVED_S)
        return verdict

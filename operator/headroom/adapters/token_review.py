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
"""Of each kind: rejected tokens of strangers do not displace accepted ones."""
AT_ONCE = 8
MOST_WAITING = 64
"""Unknown tokens that wait; more are rejected unseen. At 10 ms per review one waits for 0.1 s."""
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
        self._accepted: dict[bytes, float] = {}
        self._rejected: dict[bytes, float] = {}
        """Until when each verdict holds, by digest."""
        self._under_way: dict[bytes, asyncio.Task[bool]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, token: str) -> bool:
        """Return whether the token is the account's; False if the API server is unavailable."""
        if not token or len(token) > MAX_TOKEN_BYTES:
            return False
        digest = hashlib.sha256(token.encode()).digest()
        known = self._fresh(digest)
        if known is not None:
            return known
        task = self._under_way.get(digest)  # a gateway opens several streams with one token
        if task is None:
            if len(self._under_way) >= AT_ONCE + MOST_WAITING:
                return False
            task = self._under_way[digest] = asyncio.create_task(self._ask(token, digest))
            task.add_done_callback(lambda _: self._under_way.pop(digest))
        return await asyncio.shield(task)

    def _fresh(self, digest: bytes) -> bool | None:
        now_s = asyncio.get_running_loop().time()
        if now_s < self._accepted.get(digest, 0.0):
            return True
        return False if now_s < self._rejected.get(digest, 0.0) else None

    async def _ask(self, token: str, digest: bytes) -> bool:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            async with self._slots:
                answer = await self._api.create(review, field_manager="headroom")
            status = answer.get("status", {})
        except ClusterError as error:
            _log.warning("a token could not be reviewed: %s", error)
            return False
        verdict = (
            status.get("authenticated") is True
            and status.get("user", {}).get("username") == self._user
            and self._audience in status.get("audiences", ())
        )
        verdicts = self._accepted if verdict else self._rejected
        if len(verdicts) >= REMEMBERED:
            verdicts.clear()
        verdicts[digest] = asyncio.get_running_loop().time() + BELIEVED_S
        if not verdict:
            self._accepted.pop(digest, None)
        return verdict

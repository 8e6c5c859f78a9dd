"""Authenticates tokens of one ServiceAccount with TokenReviews, a bounded number at a time."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from functools import partial
from typing import Any, Protocol

from headroom.bounded_reviews import BoundedReviews, TooManyReviewsError
from headroom.errors import ClusterError

_log = logging.getLogger(__name__)

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
        self._reviews: BoundedReviews[bool] = BoundedReviews(
            lambda: asyncio.get_running_loop().time(), accepts=bool
        )

    async def __call__(self, token: str, peer: str = "") -> bool:
        """Return whether the token is the account's; False if the API server is unavailable.

        Reviews are shared between the addresses that ask, `peer`.
        """
        if not token or len(token) > MAX_TOKEN_BYTES:
            return False
        digest = hashlib.sha256(token.encode()).digest()
        try:
            return await self._reviews.verdict(digest, peer, partial(self._review, token))
        except TooManyReviewsError:
            return False
        except ClusterError as error:
            _log.warning("a token could not be reviewed: %s", error)
            return False

    async def _review(self, token: str) -> bool:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        answer = await self._api.create(review, field_manager="headroom")
        status = answer.get("status", {})
        return (
            status.get("authenticated") is True
            and status.get("user", {}).get("username") == self._user
            and self._audience in status.get("audiences", ())
        )

"""Tokens are reviewed a few at a time, and unknown clients do not displace the accepted ones."""

from __future__ import annotations

import asyncio
from typing import Any

from headroom.adapters.api_server.token_review import TokenReview
from headroom.bounded_reviews import AT_ONCE, MOST_UNDER_WAY, REMEMBERED
from headroom.errors import Unavailable

USER, AUDIENCE = "system:serviceaccount:headroom-system:headroom-gateway", "headroom"


class Api:
    """Accepts one token; each review takes a while."""

    def __init__(self, review_s: float = 0.01) -> None:
        self.review_s = review_s
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self.error: Exception | None = None

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        self.asked.append(manifest["spec"]["token"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.review_s)
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        good = manifest["spec"]["token"].startswith("good")
        status = {"authenticated": good, "user": {"username": USER}, "audiences": [AUDIENCE]}
        return {"status": status}


def review_of(api: Api) -> TokenReview:
    return TokenReview(api, user=USER, audience=AUDIENCE)


async def test_one_token_is_reviewed_once_for_many_streams() -> None:
    api = Api()
    review = review_of(api)
    assert await asyncio.gather(*(review("good") for _ in range(20))) == [True] * 20
    assert await review("good")
    assert api.asked == ["good"]


async def test_flood_of_unknown_tokens_is_bounded_and_another_token_is_reviewed_soon() -> None:
    api = Api()
    review = review_of(api)
    flood = [
        asyncio.create_task(review(f"bad {number}", peer="10.0.0.66")) for number in range(1000)
    ]
    await asyncio.sleep(0.005)
    assert await asyncio.wait_for(review("good", peer="10.0.0.7"), 1.0)
    assert not any(await asyncio.gather(*flood))
    assert len(api.asked) <= MOST_UNDER_WAY / 2 + 1
    assert api.most_at_once == AT_ONCE


async def test_rejected_tokens_do_not_displace_accepted_ones() -> None:
    api = Api(review_s=0.0)
    review = review_of(api)
    assert await review("good")
    for number in range(REMEMBERED + 10):
        assert not await review(f"bad {number}")
    assert await review("good")
    assert api.asked.count("good") == 1


async def test_unavailable_api_accepts_no_token_and_is_asked_again() -> None:
    api = Api()
    review = review_of(api)
    api.error = Unavailable("no response")
    assert not await review("good")
    api.error = None
    assert await review("good")

"""Tokens of the console's users: reviewed once, cached, bounded, denied without an answer."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from console.web_world import Reviews, asking, bearer, clock, served
from headroom.bounded_reviews import AT_ONCE, KEPT_S, MOST_UNDER_WAY
from headroom.console.access import TokenReviewed
from headroom.console.read_model import ReadModel
from support.console_world import bystander

pytestmark = pytest.mark.clock


@pytest.mark.parametrize(
    ("path", "headers", "status", "says"),
    [
        ("/services/vision/demo", {}, 401, "kubectl create token"),
        ("/services/vision/demo", {"Authorization": "Basic Zzo="}, 401, "Bearer TOKEN"),
        ("/services/vision/demo", bearer("bad"), 401, "rejects this token"),
        ("/services/vision/demo", bearer("good"), 200, "What if"),
        ("/services/chat/bot", bearer("good"), 403, "ada may not get inferenceservices"),
        ("/", bearer("good"), 403, "add ?namespace=NAME for one"),
        ("/?namespace=vision", bearer("good"), 200, "demo"),
        ("/api/services", bearer("good"), 403, "in every namespace"),
        ("/api/services?namespace=vision", bearer("good"), 200, "demo"),
        ("/services/vision/demo?namespace=chat", bearer("good"), 200, "What if"),
        ("/services/chat/bot?namespace=vision", bearer("good"), 403, "in namespace chat"),
    ],
)
async def test_token_shows_what_its_user_may_get(
    path: str, headers: dict[str, str], status: int, says: str
) -> None:
    async with served(TokenReviewed(Reviews(), lambda: 0.0)) as client:
        answer = await client.get(path, headers=headers)
        assert answer.status == status
        assert says in await answer.text()


async def test_list_of_one_namespace_has_no_other() -> None:
    both = ReadModel(lambda: [bystander(0), bystander(1)])
    async with served(TokenReviewed(Reviews(), lambda: 0.0), both) as client:
        answer = await client.get("/api/services?namespace=vision", headers=bearer("good"))
        found = [one["namespace"] for one in (await answer.json())["services"]]
        assert found == ["vision"]


async def test_review_is_cached_for_a_minute_without_the_token() -> None:
    reviews, (now, now_s) = Reviews(), clock()
    guard = TokenReviewed(reviews, now_s)
    for _ in range(3):
        assert (await guard.judge(asking("good"))).allows
    assert [kind for kind, _ in reviews.asked] == ["TokenReview", "SubjectAccessReview"]
    assert reviews.asked[1][1]["groups"] == ["team"]
    reviews.namespaces = ()
    now[0] = KEPT_S
    assert (await guard.judge(asking("good"))).status == 403


async def test_unavailable_api_server_denies_and_is_asked_again() -> None:
    reviews = Reviews()
    guard = TokenReviewed(reviews, lambda: 0.0)
    reviews.failing = True
    verdict = await guard.judge(asking("good"))
    assert (verdict.status, "no answer" in verdict.message) == (503, True)
    reviews.failing = False
    assert (await guard.judge(asking("good"))).allows


async def test_flood_of_tokens_is_bounded_and_another_address_is_admitted() -> None:
    reviews = Reviews(review_s=0.01)
    guard = TokenReviewed(reviews, lambda: 0.0)
    flood = [
        asyncio.create_task(guard.judge(asking(f"bad-{number}", peer="10.0.0.66")))
        for number in range(1000)
    ]
    await asyncio.sleep(0.005)
    assert (await guard.judge(asking("good", peer="10.0.0.7"))).allows
    statuses = Counter([(await one).status for one in flood])
    assert statuses == {401: MOST_UNDER_WAY // 2, 429: 1000 - MOST_UNDER_WAY // 2}
    assert reviews.most_at_once == AT_ONCE


async def test_one_token_is_reviewed_once_for_many_requests() -> None:
    reviews = Reviews(review_s=0.01)
    guard = TokenReviewed(reviews, lambda: 0.0)
    verdicts = await asyncio.gather(*(guard.judge(asking("good")) for _ in range(50)))
    assert all(one.allows for one in verdicts)
    assert len(reviews.asked) == 2


async def test_overlong_token_is_not_reviewed() -> None:
    reviews = Reviews()
    verdict = await TokenReviewed(reviews, lambda: 0.0).judge(asking("x" * 9000))
    assert (verdict.status, reviews.asked) == (401, [])

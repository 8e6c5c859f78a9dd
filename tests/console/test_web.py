"""The console over HTTP: who is let in, what is served, under which policy."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from console_world import START_S, an_hour, bystander
from headroom.bounded_reviews import AT_ONCE, KEPT_S, MOST_UNDER_WAY
from headroom.console.access import Asking, LoopbackOnly, TokenReviewed
from headroom.console.read_model import ReadModel
from headroom.console.web import console
from headroom.errors import Unavailable
from service_world import body

pytestmark = pytest.mark.clock

MODEL, _ = an_hour(seconds=120.0)


class Reviews:
    """An API server that knows one token, and what its user may see."""

    def __init__(self, review_s: float = 0.0) -> None:
        self.review_s = review_s
        self.at_once = self.most_at_once = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.failing = False
        self.namespaces: tuple[str | None, ...] = ("vision",)

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        self.asked.append((manifest["kind"], manifest["spec"]))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.review_s)
        self.at_once -= 1
        if self.failing:
            raise Unavailable("no answer in 10 s")
        if manifest["kind"] == "TokenReview":
            known = manifest["spec"]["token"] == "good"
            user = {"username": "ada", "groups": ["team"], "uid": "7"}
            return {"status": {"authenticated": known, "user": user if known else {}}}
        attributes = manifest["spec"]["resourceAttributes"]
        return {"status": {"allowed": attributes.get("namespace") in self.namespaces}}


@asynccontextmanager
async def served(
    guard: Any = None, model: ReadModel = MODEL
) -> AsyncIterator[TestClient[Any, Any]]:
    app = console(model, guard or LoopbackOnly(), lambda: START_S)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "kind", "holds"),
    [
        ("/", "text/html", "demo"),
        ("/?q=none", "text/html", "No service matches"),
        ("/services/vision/demo", "text/html", "What if"),
        ("/services/vision/demo?ceiling=0.5", "text/html", "your values: ceiling 50"),
        ("/api/services", "application/json", '"name": "demo"'),
        ("/api/services/vision/demo", "application/json", '"state": "Healthy"'),
        ("/static/console.css", "text/css", "prefers-color-scheme: dark"),
        ("/static/console.js", "text/javascript", "use strict"),
    ],
)
async def test_pages_are_served(path: str, kind: str, holds: str) -> None:
    async with served() as client:
        answer = await client.get(path)
        assert answer.status == 200
        assert answer.content_type == kind
        assert holds in await answer.text()


@pytest.mark.parametrize(
    "path", ["/services/vision/nobody", "/static/../web.py", "/static/web.py", "/metrics", "/x"]
)
async def test_missing_page_says_so(path: str) -> None:
    async with served() as client:
        answer = await client.get(path)
        assert answer.status == 404
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
async def test_write_methods_are_rejected(method: str) -> None:
    async with served() as client:
        assert (await client.request(method, "/")).status == 405


async def test_page_runs_only_the_console_script() -> None:
    async with served() as client:
        answer = await client.get("/")
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        page = await answer.text()
        assert "http://" not in page
        assert "https://" not in page


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8081", 200),
        ("127.0.0.1", 200),
        ("[::1]:8081", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8081", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
async def test_loopback_console_rejects_other_host_names(host: str, status: int) -> None:
    verdict = await LoopbackOnly().judge(Asking(host=host, authorization="", namespace=None))
    assert verdict.status == status


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


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


def asking(token: str, namespace: str | None = "vision", peer: str = "10.0.0.7") -> Asking:
    return Asking(host="10.0.0.1", authorization=f"Bearer {token}", namespace=namespace, peer=peer)


def clock() -> tuple[list[float], Callable[[], float]]:
    now = [0.0]
    return now, lambda: now[0]


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


async def test_flood_of_tokens_is_bounded_and_another_address_is_let_in() -> None:
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


PATHS = (
    "spec",
    "status",
    "spec__accelerator",
    "spec__accelerator__count",
    "spec__accelerator__resource",
    "spec__slo",
    "spec__slo__utilizationCeiling",
    "spec__slo__latency",
    "spec__slo__latency__target",
    "spec__slo__latency__percentile",
    "spec__scaling",
    "spec__scaling__minReplicas",
    "spec__scaling__maxReplicas",
    "spec__scaling__mode",
    "spec__targetRef",
    "spec__runtime__podTemplate",
    "status__replicas",
    "status__decision",
)
WRONG = ("many", 1.5, -1, 10**30, [1], {"a": {"b": "c"}}, True, "")


async def test_list_survives_an_object_with_a_field_of_any_type() -> None:
    objects = [
        body(**{path: value}) | {"metadata": body()["metadata"] | {"uid": f"{path}-{number}"}}
        for path in PATHS
        for number, value in enumerate(WRONG)
    ]
    model = ReadModel(lambda: [*objects, bystander(1)])
    async with served(model=model) as client:
        for path in ("/", "/api/services", "/?sort=accelerators", "/services/vision/resnet50"):
            answer = await client.get(path)
            assert answer.status == 200, path
            assert "resnet50" in await answer.text()

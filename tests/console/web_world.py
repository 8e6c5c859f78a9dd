"""The console over HTTP with reviews of tokens, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from headroom.console.access import AccessRequest, LoopbackOnly
from headroom.console.read_model import ReadModel
from headroom.console.web import console
from headroom.errors import Unavailable
from support.console_world import START_S, an_hour

pytestmark = pytest.mark.clock

MODEL = an_hour(seconds=120.0)[0]


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


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def asking(token: str, namespace: str | None = "vision", peer: str = "10.0.0.7") -> AccessRequest:
    return AccessRequest(
        host="10.0.0.1", authorization=f"Bearer {token}", namespace=namespace, peer=peer
    )


def clock() -> tuple[list[float], Callable[[], float]]:
    now = [0.0]
    return now, lambda: now[0]

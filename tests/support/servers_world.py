"""Third-party model servers in memory: cold at first, and warm after some requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from headroom.errors import RequestFailed
from headroom.profiles.open_inference import RepeatedText
from support.cluster_world import Manifest
from support.pods_world import Pods

COLD_S, WARM_S = 2.0, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    status: int = 200
    text: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class PodEvents:
    """A watch of pods that tells what a scenario has it tell."""

    tell: Callable[[str, Manifest], None] = lambda *_: None
    failures: int = 0
    """Number of failures before it goes on."""

    async def run(
        self, on_list: Callable[[list[Manifest]], None], on_event: Callable[[str, Manifest], None]
    ) -> None:
        if self.failures:
            self.failures -= 1
            raise KeyError("metadata")
        self.tell = on_event
        await asyncio.Event().wait()


@dataclass(slots=True)
class Servers:
    """Answers for every pod; each start of a container is cold for its first requests."""

    pods: Pods
    cold_requests: int = 3
    warm_s: float = WARM_S
    refusal: tuple[int, str] | None = None
    """Status and words with which everything is answered."""
    silent: bool = False
    error: Exception | None = None
    """Exception that each request raises, of a kind that no caller expects."""
    metadata: str = ""
    asked: dict[str, list[str]] = field(default_factory=dict)
    """Bodies by start of a container."""
    urls: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def get(self, url: str, deadline_s: float) -> Answered:
        await asyncio.sleep(0.001)
        self.urls.append(url)
        return Answered(text=self.metadata)

    async def post(
        self, url: str, body: str | RepeatedText, content_type: str, deadline_s: float
    ) -> Answered:
        self.urls.append(url)
        if self.error is not None:
            raise self.error
        if self.silent:
            await asyncio.sleep(deadline_s)
            raise RequestFailed(f"{url} gave no answer within {deadline_s:g} s")
        asked = self.asked.setdefault(self._start(url), [])
        asked.append(body if isinstance(body, str) else b"".join(body.chunks()).decode())
        seconds = COLD_S if len(asked) <= self.cold_requests else self.warm_s
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(seconds)
        self.at_once -= 1
        self.pods.count(url.removeprefix("http://").partition(":")[0])
        if self.refusal is not None:
            return Answered(status=self.refusal[0], text=self.refusal[1], seconds=seconds)
        return Answered(seconds=seconds)

    def _start(self, url: str) -> str:
        """Name the container that listens there."""
        address = url.removeprefix("http://").partition(":")[0]
        for pod in self.pods.all():
            if pod["status"].get("podIP") == address:
                containers = pod["status"].get("containerStatuses") or [{"containerID": address}]
                return str(containers[0]["containerID"])
        raise RequestFailed(f"{url}: connection refused")

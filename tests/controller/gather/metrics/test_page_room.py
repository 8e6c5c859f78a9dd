"""Pages that arrive or wait have room in sum; a namespace leaves room to others."""

from __future__ import annotations

import asyncio

import pytest

from headroom.controller.gather.metrics.page_room import LARGEST_BYTES, USUAL_BYTES, PageRoom
from headroom.errors import PageTooLarge, ScrapeFailed


class Pods:
    """Pages by URL; counts what is kept at once."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.asked: list[tuple[str, int]] = []
        self.under_way = 0

    async def scrape(self, url: str, prefix: str, most_bytes: int) -> str:
        self.asked.append((url, most_bytes))
        self.under_way += most_bytes
        try:
            await asyncio.sleep(0)
            if self.sizes[url] > most_bytes:
                raise PageTooLarge(f"{url} returned more than {most_bytes} bytes")
            return "x" * self.sizes[url]
        finally:
            self.under_way -= most_bytes


async def fetched(room: PageRoom, pod: str, namespace: str = "a") -> int:
    async with room.page(namespace, pod, pod, "") as page:
        return len(page)


async def test_large_page_is_fetched_again_once_and_then_has_its_room() -> None:
    pods = Pods({"p": 100_000})
    room = PageRoom(pods)
    assert [await fetched(room, "p") for _ in range(2)] == [100_000] * 2
    pods.sizes["p"] = 10
    assert [await fetched(room, "p") for _ in range(2)] == [10] * 2
    sizes = [size for _, size in pods.asked]
    assert sizes == [USUAL_BYTES, LARGEST_BYTES, 125_000, 125_000, USUAL_BYTES]


async def test_page_above_the_bound_fails() -> None:
    room = PageRoom(Pods({"p": LARGEST_BYTES + 1}))
    with pytest.raises(ScrapeFailed, match="more than 262144 bytes"):
        await fetched(room, "p")


async def test_pages_of_one_namespace_are_bounded_in_sum_and_leave_room_to_another() -> None:
    hostile = [f"h{number}" for number in range(500)]
    pods = Pods(dict.fromkeys(hostile, LARGEST_BYTES) | {"v": 15_000})
    room = PageRoom(pods, 1 << 20)
    release, kept = asyncio.Event(), 0

    async def keep(pod: str) -> None:
        nonlocal kept
        async with room.page("hostile", pod, pod, "") as page:
            kept += len(page)
            await release.wait()
            kept -= len(page)

    tasks = [asyncio.create_task(keep(pod)) for pod in hostile]
    await asyncio.sleep(0.1)
    assert kept + pods.under_way <= 1 << 19
    assert await asyncio.wait_for(fetched(room, "v", "victim"), 1.0) == 15_000
    release.set()
    await asyncio.gather(*tasks)
    assert kept == 0

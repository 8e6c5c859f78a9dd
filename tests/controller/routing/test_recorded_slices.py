"""One namespace keeps no other from being routed after a restart, whatever is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from headroom.controller.ports import Cluster, Manifest
from headroom.controller.routing.recorded_slices import recorded_slices
from headroom.errors import AnswerTooLarge, ClusterError, Forbidden, Unavailable
from support.virtual_time import VirtualTimeLoop

TOO_LARGE = AnswerTooLarge("at most 4194304 bytes")


class Slices:
    """Each namespace has a slice; some reads fail, for a number of times."""

    def __init__(self, **failing: tuple[ClusterError, int]) -> None:
        self.failing = failing
        self.reads = 0

    async def list_all(self, _: str, kind: str, namespace: str | None, *__: Any) -> list[Manifest]:
        assert kind == "EndpointSlice"
        self.reads += 1
        name = namespace or "all"
        error, times = self.failing.get(name, (TOO_LARGE, 0))
        if times > 0:
            self.failing[name] = error, times - 1
            raise error
        return [{"metadata": {"namespace": one}} for one in ([namespace] if namespace else "abc")]


def found(cluster: Slices, *namespaces: str) -> tuple[str, float]:
    """Return the namespaces of the slices that were read, and how long that took."""

    async def read() -> tuple[str, float]:
        now_s: Callable[[], float] = asyncio.get_running_loop().time
        begun_s = now_s()
        slices = await recorded_slices(cast(Cluster, cluster), namespaces, {"a", "b", "c"})
        return "".join(one["metadata"]["namespace"] for one in slices), now_s() - begun_s

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(read())


@pytest.mark.parametrize(
    ("cluster", "namespaces", "read", "within_s"),
    [
        pytest.param(Slices(), "", "abc", 0, id="all at once"),
        pytest.param(Slices(), "ab", "ab", 0, id="by namespace"),
        pytest.param(Slices(all=(Unavailable("down"), 99)), "", "abc", 99, id="waits for the API"),
        pytest.param(Slices(b=(Unavailable("down"), 99)), "ab", "ab", 99, id="of a namespace too"),
        pytest.param(Slices(all=(TOO_LARGE, 999)), "", "abc", 0, id="too large, but for none"),
        pytest.param(
            Slices(all=(TOO_LARGE, 999), b=(TOO_LARGE, 999)), "", "ac", 10, id="too large"
        ),
        pytest.param(Slices(b=(Forbidden("no"), 999)), "abc", "ac", 10, id="refused"),
        pytest.param(Slices(b=(Forbidden("no"), 5)), "abc", "abc", 5, id="refused for a while"),
    ],
)
def test_slices_are_read_as_far_as_they_can_be(
    cluster: Slices, namespaces: str, read: str, within_s: float
) -> None:
    names, took_s = found(cluster, *namespaces)
    assert names == read
    assert took_s <= within_s + 0.1


@pytest.mark.parametrize("namespaces", ["", "a"])
def test_throttling_is_kept_and_a_failure_that_lasts_is_logged_once(
    namespaces: str, caplog: pytest.LogCaptureFixture
) -> None:
    throttled = Unavailable("too many requests", retry_after_s=30.0), 20
    names, took_s = found(Slices(all=throttled, a=throttled), *namespaces)
    assert names == (namespaces or "abc")
    assert took_s == pytest.approx(600.0)
    assert caplog.text.count("too many requests") == 1

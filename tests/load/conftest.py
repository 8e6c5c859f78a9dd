"""An event loop whose clock moves only while everything waits: minutes of replay pass at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator

import pytest


class _Selector(selectors.SelectSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits for something that no timer brings"
            self.now_s += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s


@pytest.fixture
def virtual_time() -> Iterator[asyncio.Runner]:
    """Runs coroutines in virtual time, from 0 s."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        yield runner

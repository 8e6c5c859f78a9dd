"""Fixtures: a real Envoy, and the replicas that a test starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes_gateway import Gateway, Replica, gateway


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with gateway(tmp_path) as front:
        yield front


@pytest.fixture
async def started() -> AsyncIterator[list[Replica]]:
    replicas: list[Replica] = []
    yield replicas
    for one in replicas:
        await one.stop()

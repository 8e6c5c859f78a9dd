"""Fixtures: a real Envoy, an activator, and the replicas that a test starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes_activator import Stage, stage
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


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Stage]:
    folder = tmp_path / "activator"  # tmp_path has the gateway's token
    folder.mkdir()
    async with stage(folder) as held:
        yield held

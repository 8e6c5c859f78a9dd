"""Fixtures: a real Envoy, an activator, and the replicas that a test starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.fakes_activator import Stage, stage
from support.fakes_gateway import front, started

__all__ = ["front", "held", "started"]


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Stage]:
    folder = tmp_path / "activator"  # tmp_path has the gateway's token
    folder.mkdir()
    async with stage(folder) as held:
        yield held

"""A model server as a separate process, stopped after use."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

import aiohttp

from free_ports import free_port


@dataclass
class Server:
    process: asyncio.subprocess.Process
    url: str

    async def ready(self) -> None:
        async with aiohttp.ClientSession() as http, asyncio.timeout(20):
            while not await self._is_ready(http):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    async def shows(self, metric: str, value: int, **labels: str) -> None:
        """Wait until its metrics page has this value for the model."""
        words = ",".join(f'{name}="{word}"' for name, word in {"model": "m", **labels}.items())
        line = f"headroom_{metric}{{{words}}} {value}\n"
        async with aiohttp.ClientSession() as http, asyncio.timeout(20):
            while line not in await self._page(http):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)

    async def _page(self, http: aiohttp.ClientSession) -> str:
        async with http.get(f"{self.url}/metrics") as answer:
            return await answer.text()

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.url}/v2/health/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


@asynccontextmanager
async def serving(
    environment: Mapping[str, str] = MappingProxyType({}), /, **settings: object
) -> AsyncIterator[Server]:
    port = settings.get("PORT") or free_port()
    defaults = {
        "ENGINE": "emulated",
        "HOST": "127.0.0.1",
        "PORT": port,
        "MODEL_NAME": "m",
        "EMULATED_LOAD_S": 0,
        "EMULATED_FIXED_COST_S": 0.005,
        "WARMUP_REQUESTS": 1,
        "WARMUP_MAX_LATENCY_S": 10,
        "DRAIN_DELAY_S": 0.5,
    }
    env = {f"HEADROOM_{name}": str(value) for name, value in (defaults | settings).items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "headroom_server",
        env={**os.environ, **environment, **env},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Server(process, f"http://127.0.0.1:{port}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()

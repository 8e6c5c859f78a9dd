"""A generating server built from its settings, as `headroom-server` builds it, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from headroom_server.cli import configured
from headroom_server.generating_server import build_application, build_generator
from headroom_server.generation_composition.engines import build_engine, build_text
from headroom_server.generation_composition.settings_rules import check_applicable
from headroom_server.runtime.generating.generator import Generator
from headroom_server.settings import Settings


@dataclass
class ComposedWorld:
    generator: Generator
    http: httpx.AsyncClient

    async def complete(
        self, prompt: object, *, headers: dict[str, str] | None = None, **body: object
    ) -> Any:
        """Return the answer to a completion; its status must be 200."""
        content = orjson.dumps({"model": "model", "prompt": prompt, "temperature": 0, **body})
        answer = await self.http.post("/v1/completions", content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, prompt: object, headers: dict[str, str], **body: object) -> httpx.Response:
        content = orjson.dumps({"model": "model", "prompt": prompt, **body})
        return await self.http.post("/v1/completions", content=content, headers=headers)


def settings_of(folder: Path, **fields: object) -> Settings:
    """Return the settings of a server of a folder, with little memory for keys and values."""
    given = {"model_uri": f"file://{folder}", "engine": "generation", "kv_cache_bytes": 4 << 20}
    return configured(given | fields, {})


@asynccontextmanager
async def composed(settings: Settings) -> AsyncIterator[ComposedWorld]:
    """A server of these settings that is ready."""
    check_applicable(settings)
    text = build_text(settings)
    generator = build_generator(settings, build_engine(settings))
    app = build_application(settings, generator, text)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        generator.start()
        try:
            async with asyncio.timeout(60):
                await generator.started()
            assert generator.failure is None
            yield ComposedWorld(generator, http)
        finally:
            generator.stop()
            assert await asyncio.to_thread(generator.join, 20.0)

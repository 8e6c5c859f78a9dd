"""An activator on loopback with the operator's API, and replicas with scripted responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession

from free_ports import free_port
from headroom.activator.held_request import Bounds
from headroom.activator.process import Activator, Settings
from headroom.adapters.gateways.activator_api import ActivatorApi
from headroom.gateway import Endpoint
from headroom.gateway.activator_messages import Served
from support.fakes_gateway import Replica, is_open, until

TOKEN = "the-activator's-token"
KEY = "vision/resnet50"


def served(port: int, *replicas: Replica | Endpoint, **changes: object) -> Served:
    """A service with these warm replicas, unless changed."""
    values: dict[str, object] = {
        "key": KEY,
        "port": port,
        "timeout_s": 300.0,
        "max_body_bytes": 1 << 20,
        "cold_start_s": None,
        "in_flight": 8,
        "replicas": tuple(one.endpoint if isinstance(one, Replica) else one for one in replicas),
    }
    return Served(**(values | changes))  # type: ignore[arg-type]


async def authenticate(token: str, _: str) -> bool:
    return token == TOKEN


@dataclass
class Stage:
    """The operator's API for activators, one activator, and a client."""

    api: ActivatorApi
    activator: Activator
    client: ClientSession
    port: int
    """Port of the service."""
    ended: asyncio.Event
    running: asyncio.Task[None]
    woken: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v2/infer"

    def tell(self, *replicas: Replica | Endpoint, **changes: object) -> None:
        self.api.publish([served(self.port, *replicas, **changes)])

    async def opened(self, **changes: object) -> None:
        """Tell of the service without a replica, and wait until its port is known to be open."""
        self.tell(**changes)

        async def known() -> bool:
            return bool(self.api.accepting(self.port))

        await until(known, "the operator knows that the port is open")
        assert await is_open(self.port)

    async def held(self, number: int) -> None:
        async def reached() -> bool:
            return self.api.held(KEY) == number

        await until(reached, f"the operator knows of {number} held")


@contextlib.asynccontextmanager
async def stage(
    folder: Path, bounds: Bounds | None = None, drain_s: float = 5.0
) -> AsyncIterator[Stage]:
    """Start the operator's API and an activator; end both."""
    api, api_port = ActivatorApi(authenticate, hold_s=0.5), free_port()
    token_file = folder / "token"
    token_file.write_text(TOKEN)
    serving = asyncio.create_task(api.serve(api_port, "127.0.0.1"))
    settings = Settings(
        operator=f"http://127.0.0.1:{api_port}",
        token_file=token_file,
        address="127.0.0.1",
        port=free_port(),
        bounds=bounds or Bounds(),
        tls=None,
        drain_s=drain_s,
    )
    ended = asyncio.Event()
    async with ClientSession() as session, ClientSession() as client:
        activator = Activator(settings, session)
        running = asyncio.create_task(activator.run(ended))
        stage = Stage(api, activator, client, free_port(), ended, running)
        api.listen(on_held=stage.woken.append, on_change=lambda: None)
        try:
            yield stage
        finally:
            running.cancel()
            serving.cancel()
            await asyncio.gather(running, serving, return_exceptions=True)


async def answers(tasks: Sequence[asyncio.Task[object]], number: int) -> None:
    async def done() -> bool:
        return sum(task.done() for task in tasks) >= number

    await until(done, f"{number} are answered")

"""Ray Serve: one replica, `serve.batch` with 8 items and a wait of 5 ms."""

from __future__ import annotations

import signal
import sys
from typing import Any

import ray
from ray import serve
from sleeping import MAX_BATCH_SIZE, Device
from starlette.requests import Request

WAIT_S = 0.005
MAX_ONGOING = 512
"""Its default of 5 would cap batches at 5."""


@serve.deployment(num_replicas=1, max_ongoing_requests=MAX_ONGOING)
class Model:
    """JSON in, JSON out."""

    def __init__(self) -> None:
        self._sleeper = Device()

    @serve.batch(  # type: ignore[untyped-decorator]
        max_batch_size=MAX_BATCH_SIZE, batch_wait_timeout_s=WAIT_S
    )
    async def predict(self, rows: list[list[float]]) -> list[float]:
        """One batch, off the loop."""
        import asyncio  # noqa: PLC0415 - the class travels to another process

        await asyncio.get_running_loop().run_in_executor(None, self._sleeper.spend, len(rows))
        return [float(sum(row)) for row in rows]

    async def __call__(self, request: Request) -> dict[str, Any]:
        """One request."""
        body = await request.json()
        return {"sum": await self.predict(body["x"])}


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Model.bind(), name="model", route_prefix="/")  # type: ignore[attr-defined]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        serve.shutdown()
        ray.shutdown()

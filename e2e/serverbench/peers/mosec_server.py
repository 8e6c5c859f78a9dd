"""mosec: one worker process, batches of 8, waits 5 ms to fill a batch."""

from __future__ import annotations

from typing import Any

from mosec import Server, Worker
from sleeping import MAX_BATCH_SIZE, Device

WAIT_MS = 5


class Model(Worker):  # type: ignore[misc]
    """JSON in, JSON out."""

    def __init__(self) -> None:
        super().__init__()
        self._device = Device()

    def forward(self, data: list[dict[str, Any]]) -> list[dict[str, float]]:
        """One batch."""
        self._device.spend(len(data))
        return [{"sum": float(sum(one["x"]))} for one in data]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Model, num=1, max_batch_size=MAX_BATCH_SIZE, max_wait_time=WAIT_MS)
    server.run()

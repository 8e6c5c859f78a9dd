"""mosec: one worker process."""

from __future__ import annotations

from typing import Any

from cold_device import MAX_BATCH_SIZE, ColdDevice
from mosec import Server, Worker


class Model(Worker):  # type: ignore[misc]
    """JSON in, JSON out."""

    def __init__(self) -> None:
        super().__init__()
        self._device = ColdDevice()

    def forward(self, data: list[dict[str, Any]]) -> list[dict[str, float]]:
        """One batch."""
        self._device.spend(len(data))
        return [{"sum": float(sum(one["x"]))} for one in data]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Model, num=1, max_batch_size=MAX_BATCH_SIZE, max_wait_time=5)
    server.run()

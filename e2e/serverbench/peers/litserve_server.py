"""LitServe: one worker, batches of 8, waits 5 ms to fill a batch."""

from __future__ import annotations

import sys

import litserve
from sleeping import MAX_BATCH_SIZE, Device

WAIT_S = 0.005


class Model(litserve.LitAPI):  # type: ignore[misc]
    """JSON in, JSON out."""

    def setup(self, device: str) -> None:
        """Called in the worker."""
        self._sleeper = Device()

    def decode_request(self, request) -> list[float]:  # type: ignore[no-untyped-def]
        """The row of a request; LitServe would take an annotation for a form of its own."""
        row: list[float] = request["x"]
        return row

    def batch(self, inputs: list[list[float]]) -> list[list[float]]:
        """Rows stay rows."""
        return inputs

    def predict(self, x: list[list[float]]) -> list[float]:
        """One batch."""
        self._sleeper.spend(len(x))
        return [float(sum(row)) for row in x]

    def unbatch(self, output: list[float]) -> list[float]:
        """One sum each."""
        return output

    def encode_response(self, output: float) -> dict[str, float]:
        """The answer."""
        return {"sum": output}


if __name__ == "__main__":
    api = Model(max_batch_size=MAX_BATCH_SIZE, batch_timeout=WAIT_S)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning"
    )

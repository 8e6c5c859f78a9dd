"""MLServer: its adaptive batching, one worker process."""

from __future__ import annotations

from cold_device import ColdDevice
from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Model(MLModel):  # type: ignore[misc]
    """Open Inference Protocol in and out."""

    async def load(self) -> bool:
        """Nothing to load."""
        self._device = ColdDevice()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """One batch, merged by MLServer along the first dimension."""
        tensor = payload.inputs[0]
        items, width = tensor.shape
        self._device.spend(items)
        numbers = list(tensor.data)
        sums = [float(sum(numbers[at : at + width])) for at in range(0, items * width, width)]
        output = ResponseOutput(name="sum", shape=[items, 1], datatype="FP64", data=sums)
        return InferenceResponse(model_name=self.name, outputs=[output])

"""One torch device: CUDA where there is one, else the CPU."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import torch

from headroom_server.engine import DeviceLostError, Work
from headroom_server.tensors import DATATYPES, Numbers, Signature, TensorSpec
from headroom_server.torch_engine.loading import Load, Loaded
from headroom_server.torch_engine.model import Tensors

DTYPES: dict[str, torch.dtype] = {
    "BOOL": torch.bool,
    "UINT8": torch.uint8,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP32": torch.float32,
    "FP64": torch.float64,
}


class TorchEngine:
    """Executes a TorchModel."""

    name = "torch"
    emulated = False

    def __init__(self, load: Load, *, threads: int) -> None:
        self._load = load
        self._loaded: Loaded | None = None
        self._threads = threads
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.device = (
            torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else "cpu"
        )

    def load(self) -> Signature:
        """Bring the model to the device.

        Raises:
            LoadError: where class or files are not what they must be.
        """
        torch.set_num_threads(self._threads)
        self._loaded = self._load(self._device)
        return self._loaded.signature

    def execute(self, batch: Sequence[Work]) -> Sequence[Mapping[str, Numbers]]:
        """One forward pass over all requests, and its rows dealt out again."""
        assert self._loaded is not None
        model, signature = self._loaded
        sizes = [work.items for work in batch]
        inputs = {spec.name: _joined(spec, batch) for spec in signature.inputs}
        try:
            with torch.inference_mode():
                result = model.postprocess(model.forward(model.preprocess(inputs)))
            columns = {spec.name: _dealt(spec, result, sizes) for spec in signature.outputs}
        except RuntimeError as error:
            # After such an error every later call of the process fails too.
            if "CUDA error" in str(error):
                raise DeviceLostError(str(error).partition("\n")[0]) from error
            raise
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def unload(self) -> None:
        """Let the weights go: other models of the process find the room."""
        self._loaded = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def _joined(spec: TensorSpec, batch: Sequence[Work]) -> torch.Tensor:
    numbers = bytearray(b"".join(memoryview(work.inputs[spec.name]) for work in batch))
    return torch.frombuffer(numbers, dtype=DTYPES[spec.datatype]).reshape(-1, *spec.shape)


def _dealt(spec: TensorSpec, result: Tensors, sizes: Sequence[int]) -> list[Numbers]:
    if spec.name not in result:
        raise ValueError(f"the model gave {sorted(result)}, and not its output {spec.name!r}")
    tensor = result[spec.name].to("cpu", DTYPES[spec.datatype])
    if tuple(tensor.shape) != (sum(sizes), *spec.shape):
        raise ValueError(
            f"output {spec.name} has shape {(sum(sizes), *spec.shape)}; got {tuple(tensor.shape)}"
        )
    typecode = DATATYPES[spec.datatype].typecode
    return [
        array(typecode, rows.contiguous().numpy().tobytes())
        for rows in torch.split(tensor, list(sizes))
    ]

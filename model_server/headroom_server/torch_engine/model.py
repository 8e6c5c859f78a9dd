"""What the torch engine executes: a class of the user's, or an architecture with its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch

from headroom_server.tensors import Signature

Tensors = dict[str, torch.Tensor]


class TorchModel(Protocol):
    """Batches come as one tensor per declared input, the batch dimension first, padded with zeros.

    `preprocess` and `postprocess` may run on threads beside the device's, where they take long
    enough; each for one batch at a time, all under `torch.inference_mode()`. A class that has
    `wants_compile = True` gets its `forward` compiled; a signature with a `mask` gets one more
    input, which is 1 where a request has data.
    """

    signature: Signature
    """Known once `load` has returned."""

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Read what is needed from the model's directory (None: there is none) onto the device."""

    def preprocess(self, inputs: Any) -> Any:
        """From the declared inputs, on the CPU, to what `forward` takes, on the device.

        A dict by name: tensors; for an input of BYTES a list of rows, nested as its shape says, of
        `bytes` (b"" in rows that are padding).

        The inputs are memory that the next batches use again: whatever is kept must be copied.
        """

    def forward(self, batch: Any) -> Any:
        """Compute.

        Tensors of the result, also in dicts, lists and tuples, are then brought to the CPU.
        """

    def postprocess(self, result: Any) -> Any:
        """From what `forward` gave, on the CPU, to the declared outputs.

        A dict by name: tensors; for an output of BYTES a list of rows, nested as its shape says, of
        `bytes` or `str`. As many rows, and of the same padded length, as the inputs had.
        """

"""The interface of models for the torch engine: a user's class, or an architecture with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch

from headroom_server.signature import Signature

Tensors = dict[str, torch.Tensor]


class TorchModel(Protocol):
    """Batches have one tensor per declared input, the batch dimension first, padded with zeros.

    `preprocess` and `postprocess` may run on threads next to the device's if they take long enough;
    each for one batch at a time, always under `torch.inference_mode()`. A class with `wants_compile
    = True` gets its `forward` compiled; a signature with a `mask` gets one more input, which is 1
    where a request has data.

    A class may have `features`, a tuple of `TensorSpec`, and `featurize(inputs)`, which computes
    them from the inputs of one request, on the CPU: a dict by name, as `postprocess` returns it,
    padded to the request's own length. `preprocess` then gets the features in place of the inputs.
    They are computed on any thread, several requests at a time, from the inputs alone, and may be
    cached: `HEADROOM_FEATURE_CACHE_BYTES`.
    """

    signature: Signature
    """Known once `load` has returned."""

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Load what is needed from the model's directory (None: there is none) to the device."""

    def preprocess(self, inputs: Any) -> Any:
        """Convert the declared inputs, on the CPU, to the argument of `forward`, on the device.

        A dict by name: tensors; for an input of BYTES a list of rows, nested as its shape says, of
        `bytes` (b"" in padded rows).

        The next batches reuse the memory of the inputs: copy what is kept.
        """

    def forward(self, batch: Any) -> Any:
        """Compute.

        Tensors of the result, also in dicts, lists and tuples, are then copied to the CPU.
        """

    def postprocess(self, result: Any) -> Any:
        """Convert the result of `forward`, on the CPU, to the declared outputs.

        A dict by name: tensors; for an output of BYTES a list of rows, nested as its shape says, of
        `bytes` or `str`. It has as many rows, and the same padded length, as the inputs.
        """

"""Programs that contain their own code: torch.export and AOTInductor packages.

They need a trusted repository and a pinned digest. The bytes are read once, compared with the
digest, and loaded from memory: what was checked is what runs, even if the file is replaced
meanwhile.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from headroom_server.engine import LoadError
from headroom_server.repository.description import Description
from headroom_server.repository.folder import check_digest
from headroom_server.repository.formats import Format, untrusted
from headroom_server.repository.programs import check_archive
from headroom_server.signature import Signature
from headroom_server.torch_engine.model import Tensors

Program = Callable[..., Any]


class ProgramModel:
    """Takes the declared inputs in order, and returns the declared outputs in order."""

    def __init__(self, description: Description, program: Path, *, trusted: bool) -> None:
        """Check the preconditions without reading the file.

        Raises:
            LoadError: the server does not trust the repository, or no digest is pinned.
        """
        reason = untrusted(description.format, trusted=trusted)
        if reason is not None:
            raise LoadError(reason)
        declared = description.declared
        assert declared is not None
        assert description.sha256 is not None
        self.signature: Signature = declared
        self._format = description.format
        self._pinned = description.sha256
        self._path = program
        self._device = torch.device("cpu")
        self._program: Program = torch.nn.Identity()

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Check the bytes, then load the program on the device.

        Raises:
            LoadError: the digest, the kind of archive or the device is wrong.
        """
        name = self._path.name
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise LoadError(f"{name}: cannot be read: {error.strerror}") from error
        check_digest(name, hashlib.sha256(data).hexdigest(), self._pinned)
        check_archive(io.BytesIO(data), self._format, name)
        make = _exported if self._format is Format.EXPORT else _compiled
        try:
            self._program = make(data, device, name)
        except LoadError:
            raise
        except Exception as error:  # a foreign loader may raise anything
            raise LoadError(f"{name}: torch cannot load it: {error!s:.300}") from error
        self._device = device

    def preprocess(self, inputs: Tensors) -> list[torch.Tensor]:
        """Return the inputs in order, the mask last, on the device."""
        return [tensor.to(self._device, non_blocking=True) for tensor in inputs.values()]

    def forward(self, batch: Sequence[torch.Tensor]) -> Any:
        """Run the program."""
        return self._program(*batch)

    def postprocess(self, result: Any) -> Tensors:
        """Return the outputs by declared name, from a tensor, tensors in order, or a dict."""
        names = [spec.name for spec in self.signature.outputs]
        if isinstance(result, dict):
            return result
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        if len(results) != len(names):
            raise ValueError(
                f"the program must return the outputs {names}; got {len(results)} tensors"
            )
        return dict(zip(names, results, strict=True))


def _exported(data: bytes, device: torch.device, name: str) -> Program:
    from torch.export.passes import move_to_device_pass  # noqa: PLC0415 - 3 s of imports

    program = torch.export.load(io.BytesIO(data))
    if device.type != "cpu":
        program = move_to_device_pass(program, device)
    module: Program = program.module()
    return module


def _compiled(data: bytes, device: torch.device, name: str) -> Program:
    from torch._inductor import aoti_load_package  # noqa: PLC0415 - 3 s of imports

    index = -1 if device.index is None else device.index
    program = aoti_load_package(io.BytesIO(data), device_index=index)
    built_for = program.get_metadata().get("AOTI_DEVICE_KEY", device.type)
    if built_for != device.type:
        raise LoadError(f"{name} is compiled for {built_for}; this device is {device.type}")
    module: Program = program
    return module

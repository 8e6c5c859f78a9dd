"""Memory for collecting batches, and copies to and from the device.

On CUDA: pinned memory, and a separate stream for copies to the device, so that they run in parallel
with computing. On the CPU nothing is copied.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch


class Transfers(Protocol):
    """Device operations that an engine needs besides computing."""

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return zeroed host memory from which copies to the device can run asynchronously."""

    def sending(self) -> AbstractContextManager[object]:
        """Return a context in which copies run in parallel with computing."""

    def sent(self) -> Any:
        """Return an event after everything submitted so far."""

    def receive(self, mark: Any) -> None:
        """Let later computations begin after that event."""

    def fetch(self, value: Any) -> Any:
        """Copy all tensors of a result to the host, and wait for them.

        The result is a tensor, or dicts, lists and tuples of tensors; anything else is unchanged.
        """


class CpuTransfers:
    """Nothing needs to be copied."""

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return ordinary memory."""
        return torch.zeros(shape, dtype=dtype)

    def sending(self) -> AbstractContextManager[object]:
        """Return a context without effect."""
        return nullcontext()

    def sent(self) -> None:
        """Return None."""

    def receive(self, mark: None) -> None:
        """Do nothing."""

    def fetch(self, value: Any) -> Any:
        """Return the result unchanged."""
        return value


class CudaTransfers:
    """One stream for copies to the device; results are copied on the computing stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return pinned memory."""
        return torch.zeros(shape, dtype=dtype, pin_memory=True)

    def sending(self) -> AbstractContextManager[object]:
        """Use the copy stream. Keep what is created on it until it has been used."""
        return torch.cuda.stream(self._stream)

    def sent(self) -> torch.cuda.Event:
        """Return an event on the copy stream."""
        mark: torch.cuda.Event = self._stream.record_event()
        return mark

    def receive(self, mark: torch.cuda.Event) -> None:
        """Let the computing stream wait, not the host."""
        torch.cuda.current_stream(self._device).wait_event(mark)

    def fetch(self, value: Any) -> Any:
        """Copy everything to pinned memory, then wait once for all copies."""
        fetched = each_tensor(value, self._fetched)
        # a blocking event sleeps; others would spin and take CPU from the host threads
        done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        done.record(torch.cuda.current_stream(self._device))
        done.synchronize()
        return fetched

    def _fetched(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "cpu":
            return tensor
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)


def transfers_of(device: torch.device) -> Transfers:
    """Return the tensors that are on the device."""
    return CudaTransfers(device) if device.type == "cuda" else CpuTransfers()


def each_tensor(value: Any, change: Any) -> Any:
    """Return the same dicts, lists and tuples, with every tensor replaced."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: each_tensor(one, change) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each_tensor(one, change) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(each_tensor(one, change) for one in value)
    return value

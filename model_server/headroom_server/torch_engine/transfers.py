"""Memory that batches are collected in, and copies to and from the device.

On CUDA: pinned memory, and a stream of its own for what goes to the device, so that copying runs
beside computing. On the CPU there is nothing to copy.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch


class Transfers(Protocol):
    """What an engine needs of its device beside computing."""

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Zeroed host memory, from which copies to the device can run by themselves."""

    def sending(self) -> AbstractContextManager[object]:
        """What is copied within, is copied beside what computes."""

    def sent(self) -> Any:
        """A mark after everything that was sent so far."""

    def receive(self, mark: Any) -> None:
        """Let what is computed from now on begin after that mark."""

    def fetch(self, value: Any) -> Any:
        """Bring all tensors of a result to the host; they are complete on return.

        A tensor, or dicts, lists and tuples of tensors; anything else stays what it is.
        """


class CpuTransfers:
    """Everything is where it is needed."""

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Plain memory."""
        return torch.zeros(shape, dtype=dtype)

    def sending(self) -> AbstractContextManager[object]:
        """Nothing."""
        return nullcontext()

    def sent(self) -> None:
        """Nothing."""

    def receive(self, mark: None) -> None:
        """Nothing."""

    def fetch(self, value: Any) -> Any:
        """As it is."""
        return value


class CudaTransfers:
    """One stream for what goes to the device; results come on the computing stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Pinned memory."""
        return torch.zeros(shape, dtype=dtype, pin_memory=True)

    def sending(self) -> AbstractContextManager[object]:
        """On the copy stream. What is made on it must be kept until it has been used."""
        return torch.cuda.stream(self._stream)

    def sent(self) -> torch.cuda.Event:
        """An event on the copy stream."""
        mark: torch.cuda.Event = self._stream.record_event()
        return mark

    def receive(self, mark: torch.cuda.Event) -> None:
        """The computing stream waits; the host does not."""
        torch.cuda.current_stream(self._device).wait_event(mark)

    def fetch(self, value: Any) -> Any:
        """Copy all to pinned memory, then sleep once until all are there."""
        fetched = each_tensor(value, self._fetched)
        # a blocking event sleeps where another would spin, and take the host threads' core
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
    """Those of the device."""
    return CudaTransfers(device) if device.type == "cuda" else CpuTransfers()


def each_tensor(value: Any, change: Any) -> Any:
    """The same dicts, lists and tuples, with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: each_tensor(one, change) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each_tensor(one, change) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(each_tensor(one, change) for one in value)
    return value

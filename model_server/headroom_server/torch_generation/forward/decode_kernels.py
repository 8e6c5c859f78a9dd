"""The kernels of recorded decodes: FlexAttention, and CUDA graphs to record with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from headroom_server.torch_engine import compilation


class Flex(Protocol):
    """Computes FlexAttention."""

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *,
        block_mask: BlockMask,
        enable_gqa: bool,
    ) -> torch.Tensor:
        """Return the attention's output, of the queries' shape."""


class Recorded(NamedTuple):
    """A recorded computation."""

    result: torch.Tensor
    """Has the result after each replay."""
    replay: Callable[[], None]


class Kernels(NamedTuple):
    """Kernels of a device for decodes of static sizes."""

    flex: Flex
    record: Callable[[Callable[[], torch.Tensor]], Recorded]
    """Records what a function computes on the device. It is called for that only: what is replayed
    reads the same tensors, wherever their numbers come from then."""
    check: Callable[[], None] = lambda: None
    """Raises what the device raises if nothing can be computed on it any more."""


def cuda_kernels(programs: int, device: torch.device) -> Kernels:
    """Return CUDA's; FlexAttention is compiled once for each of this many shapes."""
    return Kernels(compiled_flex(programs), _CudaRecorder(), lambda: _compute_something(device))


def _compute_something(device: torch.device) -> None:
    torch.ones(1, device=device).tolist()


def compiled_flex(programs: int, backend: str = "inductor") -> Flex:
    """Return FlexAttention, compiled at its first call with each of this many shapes."""
    compilation.admit_programs(programs)
    flex: Flex = torch.compile(flex_attention, backend=backend, dynamic=False, fullgraph=True)
    return flex


class _CudaRecorder:
    """Records CUDA graphs that share their memory for intermediate results."""

    def __init__(self) -> None:
        self._pool: Any = None

    def __call__(self, compute: Callable[[], torch.Tensor]) -> Recorded:
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compute()  # compiles, and lets libraries take their memory
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = compute()
        self._pool = graph.pool()
        return Recorded(result, graph.replay)

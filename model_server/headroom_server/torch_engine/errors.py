"""torch's errors by the required reaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headroom_server.engine import DeviceLostError, OutOfMemoryError

NO_MEMORY = (
    *("can't allocate memory", "not enough memory"),  # torch on the CPU
    *("CUDA error: out of memory", "STATUS_ALLOC_FAILED"),  # pinned memory; cuBLAS, cuDNN
)
"""Messages without an exception type of their own. The device works on after them."""


@contextmanager
def translated() -> Iterator[None]:
    """Translate torch's errors.

    Raises:
        OutOfMemoryError: less may succeed.
        DeviceLostError: nothing can be executed any more.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        torch.cuda.empty_cache()
        raise OutOfMemoryError(_first_line(error)) from error
    except RuntimeError as error:
        if any(words in str(error) for words in NO_MEMORY):
            raise OutOfMemoryError(_first_line(error)) from error
        # after such an error every later call of the process fails too
        if "CUDA error" in str(error):
            raise DeviceLostError(_first_line(error)) from error
        raise


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]

"""Which of this machine's devices serve a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from headroom_server.engine import LoadError


def chosen(wanted: Sequence[str], cuda_devices: int | None = None) -> list[torch.device | None]:
    """The devices for numbers, or `all`; one None, for the usual one, where none are named.

    Without CUDA there is the CPU, and it is one device. `cuda_devices` is torch's count if unset.

    Raises:
        LoadError: for a number that this machine does not have.
    """
    if not wanted:
        return [None]
    count = torch.cuda.device_count() if cuda_devices is None else cuda_devices
    if wanted[0] == "all":
        return [torch.device("cuda", number) for number in range(count)] or [None]
    numbers = [int(number) for number in wanted]
    lacking = [number for number in numbers if number >= count]
    if lacking:
        there = f"CUDA devices 0 to {count - 1}" if count else "no CUDA device"
        raise LoadError(f"HEADROOM_DEVICES: this machine has {there}; got {lacking[0]}")
    return [torch.device("cuda", number) for number in numbers]

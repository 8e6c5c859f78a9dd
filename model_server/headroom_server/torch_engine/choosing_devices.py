"""Selects this machine's devices for a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from headroom_server.engine import LoadError


def chosen(wanted: Sequence[str], cuda_devices: int | None = None) -> list[torch.device | None]:
    """Return the devices for these numbers, or for `all`; [None], the default, if there are none.

    Without CUDA the CPU is the only device. `cuda_devices` defaults to torch's count.

    Raises:
        LoadError: this machine does not have the device.
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
        raise LoadError(
            f"HEADROOM_DEVICES must be devices of this machine, which has {there}; got {lacking[0]}"
        )
    return [torch.device("cuda", number) for number in numbers]

"""Builds the engines of a model that batches, one for each device."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from headroom_server.engine import Engine
from headroom_server.repository.description import Description
from headroom_server.repository.tables import Emulated
from headroom_server.runtime.caches import has_class
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings

if TYPE_CHECKING:
    from headroom_server.torch_engine.loading import Load


def build_engines(settings: Settings, source: ModelSource) -> list[Engine]:
    """Build one engine per device of a model. Only the path of the torch engine imports torch.

    Raises:
        LoadError: a device does not exist.
    """
    description = source.description
    if settings.engine == "emulated" or (description and description.engine == "emulated"):
        count = max(1, len(settings.devices))
        return [_emulated(settings, description, number) for number in range(count)]
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415
    from headroom_server.torch_engine.choosing_devices import chosen  # noqa: PLC0415
    from headroom_server.torch_engine.loading import (  # noqa: PLC0415
        ClassModel,
        DescribedModel,
    )

    if description is None:
        load: Load = ClassModel(settings.model_class, source.directory)
    else:
        assert source.root is not None
        assert source.directory is not None
        load = DescribedModel(
            source.root, source.directory, description, settings.repository_trusted
        )
    return [
        TorchEngine(
            load,
            threads=settings.torch_threads,
            compile_model=description is not None and description.compile,
            compile_cache=Path(settings.compile_cache) if settings.compile_cache else None,
            device=device,
            needs_features=bool(settings.feature_cache_bytes) and has_class(settings, source),
        )
        for device in chosen(settings.devices)
    ]


def _emulated(settings: Settings, description: Description | None, number: int) -> Engine:
    from headroom_server.device.emulated_engine import EmulatedEngine  # noqa: PLC0415

    cost = (description and description.emulated) or Emulated(
        fixed_cost_s=settings.emulated_fixed_cost_s,
        per_item_cost_s=settings.emulated_per_item_cost_s,
        load_s=settings.emulated_load_s,
        input_size=settings.emulated_input_size,
        per_token_cost_s=settings.emulated_per_token_cost_s,
        lengths=settings.emulated_lengths,
    )
    slow_after_s, slow_factor = settings.emulated_slowdown or (math.inf, 1.0)
    lost, lost_after_s = settings.emulated_loss or (number, math.inf)
    return EmulatedEngine(
        fixed_cost_s=cost.fixed_cost_s,
        per_item_cost_s=cost.per_item_cost_s,
        load_s=cost.load_s,
        input_size=cost.input_size,
        per_token_cost_s=cost.per_token_cost_s,
        lengths=cost.lengths,
        slow_after_s=slow_after_s,
        slow_factor=slow_factor,
        lost_after_s=lost_after_s if lost == number else math.inf,
    )

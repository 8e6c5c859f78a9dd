"""Starts vLLM with its own arguments. The only module that imports vLLM.

Written for vLLM 0.32. Of its interfaces, AsyncLLM and its arguments are stable in practice; its
statistics are not, so that `model.step_of` takes what is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headroom_server.engine import LoadError
from headroom_server.generation.values import GenerationLimits
from headroom_server.vllm_engine.model import Open, Opened


def opening(folder: Path, arguments: str) -> Open:
    """Return what starts vLLM for a model's folder.

    Raises:
        LoadError: the arguments are not vLLM's.
        ModuleNotFoundError: vLLM is not installed.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415 - takes seconds
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser(exit_on_error=False))
    try:
        given = parser.parse_args([*shlex.split(arguments), "--model", str(folder)])
        engine_arguments = AsyncEngineArgs.from_cli_args(given)
    except (Exception, SystemExit) as error:
        raise LoadError(
            f"HEADROOM_VLLM_ARGS must be arguments of `vllm serve`; got {arguments!r:.300}: {error}"
        ) from error
    engine_arguments.enable_log_requests = False
    engine_arguments.disable_log_stats = True
    engine_arguments.enable_logging_iteration_details = True

    def start(observe: Callable[[Any, Any], None]) -> Opened:
        return _start(engine_arguments, observe)

    return start


def _start(engine_arguments: Any, observe: Callable[[Any, Any], None]) -> Opened:
    from vllm.platforms import current_platform  # noqa: PLC0415
    from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415
    from vllm.v1.metrics.loggers import StatLoggerBase  # noqa: PLC0415

    class Observer(StatLoggerBase):  # type: ignore[misc]
        """Passes vLLM's statistics on, once per iteration."""

        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
            observe(scheduler_stats, iteration_stats)

        def log_engine_initialized(self) -> None:
            pass

    try:
        engine = AsyncLLM.from_engine_args(engine_arguments, stat_loggers=[Observer])
    except Exception as error:
        raise LoadError(f"vLLM did not start: {error!s:.500}; see the log above") from error
    config = engine.vllm_config
    limits = GenerationLimits(
        context_tokens=config.model_config.max_model_len,
        vocabulary=config.model_config.get_vocab_size(),
        blocks=config.cache_config.num_gpu_blocks or 0,
        block_tokens=config.cache_config.block_size,
        max_sequences=config.scheduler_config.max_num_seqs,
        max_iteration_tokens=config.scheduler_config.max_num_batched_tokens,
    )
    return Opened(engine, limits, current_platform.get_device_name(), _parameters)


def _parameters(fields: Mapping[str, Any]) -> Any:
    from vllm.sampling_params import (  # noqa: PLC0415
        RequestOutputKind,
        SamplingParams,
        StructuredOutputsParams,
    )

    structured = fields.get("structured_outputs")
    if structured is not None:
        fields = {**fields, "structured_outputs": StructuredOutputsParams(**structured)}
    return SamplingParams(**fields, output_kind=RequestOutputKind.DELTA)

"""One cold start with torch.compile in a process of its own; prints one JSON line of phases."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

BEGAN_S = time.monotonic()


def _pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def main() -> int:
    """Import, load, compile, warm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("resnet", "bert"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    import torch  # noqa: PLC0415 - the import is a phase

    from bench.gpu.models import models  # noqa: PLC0415
    from headroom_server.device.startup import StartUp, WarmUpPlan  # noqa: PLC0415
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415
    from headroom_server.torch_engine.loading import Loaded  # noqa: PLC0415

    if not options.full:
        torch.set_num_threads(1)
    model = next(one for one in models(full=options.full) if one.name == options.model)
    if not options.full:
        # each batch size is compiled for itself: on the CPU, one stands for all
        model.signature = replace(model.signature, batches=model.size.batches[-1:])

    def load(device: torch.device) -> Loaded:
        model.load(None, device)
        return Loaded(model, model.signature)

    on_phase = [("import", BEGAN_S)]
    warm = StartUp(
        TorchEngine(
            load,
            threads=torch.get_num_threads(),
            compile_model=True,
            compile_cache=options.cache,
        ),
        WarmUpPlan(
            max_batch_size=model.size.batches[-1], requests=1, max_latency_s=600, timeout_s=600
        ),
        clock=time.monotonic,
        pause=_pause,
        on_phase=lambda phase: on_phase.append((str(phase), time.monotonic())),
        on_self_test=lambda _: None,
    ).run()
    ends_s = [*(begin_s for _, begin_s in on_phase[1:]), time.monotonic()]
    phases = {
        name: end_s - begin_s for (name, begin_s), end_s in zip(on_phase, ends_s, strict=True)
    }
    print(json.dumps({"phases": phases, "compiled": warm.compiled}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

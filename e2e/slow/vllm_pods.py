"""The real vLLM as a workload of its owner: its Python and the model are folders of the node."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.images.shipped import Shipped
from slow.vllm_environment import ENVIRONMENT
from third_party.peers import COMPLETIONS, PORT, Peer, completion

MODEL = "/model"
SEQUENCES = 4
"""Sequences at once: the batch that its InferenceService states."""
ARGUMENTS = (
    "-m vllm.entrypoints.openai.api_server "
    f"--model {MODEL} --served-model-name model --host 0.0.0.0 --port {PORT} --dtype float32 "
    f"--enforce-eager --max-model-len 1024 --max-num-seqs {SEQUENCES} --block-size 32 "
    "--num-gpu-blocks-override 256 --no-enable-log-requests"
)
VARIABLES = {
    "HOME": "/tmp",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


@dataclass(frozen=True, kw_only=True)
class VllmPods(Peer):
    """Pods that run the node's vLLM: an image that contains it would have 6 GB."""

    folder: Path
    """The model, on the node."""

    @property
    def image(self) -> Shipped:
        """Image of the system packages that it needs."""
        return Shipped("localhost/third-party-vllm:dev", "e2e/slow/vllm.Dockerfile", {})

    def deployment(self, name: str, *, gated: bool = True) -> dict[str, Any]:
        """Return the workload, with the node's folders in place of an image of its own."""
        found = super().deployment(name, gated=gated)
        spec = found["spec"]["template"]["spec"]
        folders = {
            "environment": (ENVIRONMENT, str(ENVIRONMENT)),
            "python": (Path(sys.base_prefix), sys.base_prefix),
            "model": (self.folder, MODEL),
        }
        spec["enableServiceLinks"] = False  # a Service named vllm would set VLLM_PORT to a URL
        spec["volumes"] = [
            {"name": volume, "hostPath": {"path": str(path), "type": "Directory"}}
            for volume, (path, _) in folders.items()
        ]
        # Its processes share rings of 240 MB; the default of containers is 64 MB.
        spec["volumes"].append({"name": "shared", "emptyDir": {"medium": "Memory"}})
        spec["containers"][0] |= {
            "command": [str(ENVIRONMENT / "bin" / "python"), *ARGUMENTS.split()],
            "env": [{"name": key, "value": value} for key, value in VARIABLES.items()],
            "volumeMounts": [
                {"name": volume, "mountPath": place, "readOnly": True}
                for volume, (_, place) in folders.items()
            ]
            + [{"name": "shared", "mountPath": "/dev/shm"}],
        }
        return found


def vllm_pods(folder: Path) -> VllmPods:
    """Return the workload that serves this model, with promises on both token times."""
    return VllmPods(
        name="vllm",
        folder=folder,
        path=COMPLETIONS,
        body=completion(60),
        warmup={"request": {"path": COMPLETIONS, "body": completion(16)}},
        answer=b'"completion_tokens":60',
        ready_path="/health",
        cold_requests=0,
        max_latency="60s",
        drain_s=30,
        start_s=240.0,
        slo={
            "timeToFirstToken": {"target": "1s"},
            "timePerOutputToken": {"target": "500ms"},
        },
    )

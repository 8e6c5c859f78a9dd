"""Writes, during an image build, the files that a server expects and its start command."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from sleeping import MAX_BATCH_SIZE

HERE = Path(__file__).parent
CONTEXT_TOKENS = 512
TRITON = Path("/opt/venv/lib/python3.11/site-packages/pytriton/tritonserver")


def mosec() -> str:
    """Nothing but its program."""
    return "python /models/mosec_server.py --address 0.0.0.0 --port 8000"


def mlserver() -> str:
    """Two files of settings."""
    settings = {"host": "0.0.0.0", "http_port": 8000, "metrics_port": 8002, "parallel_workers": 0}
    described = {
        "name": "model",
        "implementation": "mlserver_model.Model",
        "max_batch_size": MAX_BATCH_SIZE,
        "max_batch_time": 0.005,
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 4]}],
    }
    (HERE / "settings.json").write_text(json.dumps(settings))
    (HERE / "model-settings.json").write_text(json.dumps(described))
    return "mlserver start /models"


def triton() -> str:
    """A repository of one model, and the backend with the stub for this Python."""
    folder = HERE / "repository" / "model"
    (folder / "1").mkdir(parents=True)
    description = (HERE / "triton.pbtxt").read_text()
    batch = f"max_batch_size: {MAX_BATCH_SIZE}"
    (folder / "config.pbtxt").write_text(re.sub(r"max_batch_size: \d+", batch, description))
    shutil.copy(HERE / "triton_model.py", folder / "1" / "model.py")
    backend = HERE / "backends" / "python"
    shutil.copytree(TRITON / "backends" / "python", backend)
    stub = TRITON / "python_backend_stubs" / "3.11" / "triton_python_backend_stub"
    shutil.copy(stub, backend)
    return (
        f"env LD_LIBRARY_PATH={TRITON.parents[1]}/nvidia_pytriton.libs "
        f"{TRITON}/bin/tritonserver --model-repository=/models/repository "
        "--backend-directory=/models/backends --http-port=8000 --allow-grpc=false"
    )


def _write_llama() -> None:
    from random_llama import write_random_llama  # noqa: PLC0415 - needs numpy, which not all have

    write_random_llama(HERE / "llama")


def llamacpp() -> str:
    """A small model of random weights; as many slots as a batch may have."""
    _write_llama()
    slots = f"{MAX_BATCH_SIZE} {CONTEXT_TOKENS}"
    return f"python /models/llama_server.py /models/llama 8000 {slots} 0.0.0.0"


def dynamo() -> str:
    """A frontend and a mocker, which find each other by files."""
    _write_llama()
    planes = "--discovery-backend file --request-plane tcp --event-plane zmq"
    mocker = (
        f"python -m dynamo.mocker {planes} --model-path /models/llama --model-name model "
        f"--max-num-seqs {MAX_BATCH_SIZE} --num-gpu-blocks-override 400 --block-size 32"
    )
    own = (
        "DYN_FILE_KV=/tmp/discovery DYN_TCP_RPC_HOST=127.0.0.1 DYN_TCP_RESPONSE_STREAM_HOST=lo "
        "HF_HUB_OFFLINE=1"
    )
    served = "DYN_SYSTEM_PORT=9090 DYN_SYSTEM_HOST=0.0.0.0"
    frontend = f"python -m dynamo.frontend {planes} --http-port 8000"
    return f"sh -c 'export {own}; {frontend} & {served} exec {mocker}'"


SERVERS = {
    "mosec": mosec,
    "mlserver": mlserver,
    "triton": triton,
    "llamacpp": llamacpp,
    "dynamo": dynamo,
}

if __name__ == "__main__":
    command = SERVERS[sys.argv[1]]()
    start = HERE / "start"
    start.write_text(f"#!/bin/sh\nexec {command}\n")
    start.chmod(0o755)

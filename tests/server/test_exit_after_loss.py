"""The exit code after a lost GPU, whose memory cannot even be freed."""

from __future__ import annotations

import os
from pathlib import Path

import aiohttp

from support.server_process import serving

LOST_GPU = """
import atexit
import os

import torch
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec


class Model:
    signature = Signature((TensorSpec("x", "FP32"),), (TensorSpec("y", "FP32"),))

    def load(self, directory, device):
        pass

    def preprocess(self, inputs):
        return inputs["x"]

    def forward(self, batch):
        if batch.max() > 1:
            # torch aborts while the interpreter ends, when it frees what is on a lost GPU
            atexit.register(os.abort)
            raise RuntimeError("CUDA error: device-side assert triggered")
        return batch

    def postprocess(self, result):
        return {"y": result}
"""


async def test_server_exits_with_1_after_its_gpu_was_lost(tmp_path: Path) -> None:
    (tmp_path / "lost_gpu.py").write_text(LOST_GPU)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    async with serving(
        {"PYTHONPATH": path}, ENGINE="torch", MODEL_CLASS="lost_gpu:Model"
    ) as server:
        await server.ready()
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [9.0]}]}
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{server.url}/v2/models/m/infer", json=body) as answer,
        ):
            assert answer.status == 500
        server.process.terminate()  # as the kubelet does, because it is not live
        assert await server.process.wait() == 1

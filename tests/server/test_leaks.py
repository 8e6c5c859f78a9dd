"""Secrets and paths never appear in a response, however a server refuses or fails."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from free_ports import free_port
from headroom_server.errors import DisconnectedError, RequestError, public
from headroom_server.web.application.control import REFUSALS
from headroom_server.web.application.routes import ERRORS
from support.inside import SECRET, tells_nothing
from support.server_process import Server, serving

pytestmark = pytest.mark.clock

ROW = b'{"instances":[[1,2,3,4]]}'
V2: dict[str, Any] = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4]}

BENT: list[Any] = [
    {},
    {"inputs": None},
    {"inputs": [V2 | {"name": "z"}]},
    {"inputs": [V2 | {"datatype": "BYTES"}]},
    {"inputs": [V2 | {"shape": [-1, 4]}]},
    {"inputs": [V2 | {"shape": [9, 4]}]},
    {"inputs": [V2 | {"data": ["a"] * 4}]},
    {"inputs": [V2 | {"data": [1e400] * 4}]},
    {"inputs": [V2 | {"parameters": {"shared_memory_region": "a"}}]},
    {"inputs": [V2], "outputs": [{"name": "z"}]},
    {"inputs": [V2], "parameters": {"timeout": "soon"}},
    {"instances": [[1, 2]]},
    {"instances": [[1, 2, 3, 4]] * 9},
]
BODIES = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[" * 5000,
    b'{"instances":[[NaN]]}',
    b"x" * 5000,
    *(json.dumps(one).encode() for one in BENT),
]
PATHS = [
    "/v1/models/good:predict",
    "/v2/models/good/infer",
    "/v2/models/good/versions/9/infer",
    "/v2/models/../infer",
    "/v2/models/broken/infer",
    "/v2/repository/index",
    "/v2/repository/models/broken/load",
    "/v2/repository/models/imports/load",
    "/v2/repository/models/wrong/load",
    "/v2/repository/models/linked/load",
    "/v2/repository/models/..%2f..%2fetc/load",
    "/v2/repository/models/none/unload",
]
HEADERS: list[dict[str, str]] = [
    {},
    {"content-encoding": "gzip"},
    {"inference-header-content-length": "x"},
    {"inference-header-content-length": "99999"},
    {"x-request-timeout": "soon"},
    {"x-request-priority": "12"},
    {"x-slo-class": "none"},
]

MODELS = {
    "good": "engine = 'emulated'\n[emulated]\nload_s = 0\nfixed_cost_s = 0.0005\n",
    "wrong": "x = 1\nweights = '/etc/shadow'",
    "broken": "architecture = 'leaky_model:Broken'",
    "imports": "architecture = 'leaky_model:NotThere'",
    "linked": "architecture = 'mlp'\nweights = 'out.safetensors'\n[parameters]\nsizes = [1, 1]",
}
LEAKY = """
import os
class Broken:
    def load(self, directory, device):
        import traceback
        stack = "".join(traceback.format_stack())
        raise RuntimeError(f"{directory}: {os.environ['HEADROOM_CACHE_REDIS_URL']}: {stack}")
    preprocess = forward = postprocess = None.__class__
"""


def write(root: Path) -> None:
    for name, text in MODELS.items():
        (root / name).mkdir(parents=True)
        (root / name / "model.toml").write_text(text)
    (root / "linked" / "out.safetensors").symlink_to("/etc/passwd")


async def every_answer(server: Server, *secrets: str) -> set[int]:
    """Send every wrong request; return the statuses."""
    seen = set()
    limits = aiohttp.TCPConnector(limit=8)
    async with aiohttp.ClientSession(server.url, connector=limits) as http:

        async def ask(method: str, path: str, **options: Any) -> None:
            async with http.request(method, path, **options) as answer:
                text = await answer.text()
            seen.add(answer.status)
            tells_nothing(text, *secrets)
            tells_nothing(str(answer.headers), *secrets)

        asked = [
            *((path, body, {}) for path, body in itertools.product(PATHS, BODIES)),
            *itertools.product(PATHS, (ROW, b"\x1f\x8b\x08"), HEADERS),
        ]
        await asyncio.gather(
            *(ask("POST", path, data=body, headers=head) for path, body, head in asked)
        )
        for method, path in itertools.product(
            ("GET", "DELETE"), (*PATHS, "/", "/metrics", "/openapi.json", "/v2/health/ready")
        ):
            await ask(method, path)
    return seen


async def test_responses_reveal_no_internals(tmp_path: Path) -> None:
    (tmp_path / "leaky_model.py").write_text(LEAKY)
    write(tmp_path / "models")
    settings = {
        "ENGINE": "torch",
        "MODEL_URI": f"file://{tmp_path}/models",
        "MODELS": "good",
        "MODEL_CONTROL": "explicit",
        "MAX_BODY_BYTES": 4096,
        "CACHE_BYTES": 1000,
        "REPOSITORY_TRUSTED": "true",
        "CACHE_REDIS_KEY": f"{SECRET}-{'0' * 32}",
        "CACHE_REDIS_URL": f"redis://user:{SECRET}@127.0.0.1:{free_port()}/0",
    }
    async with serving({"PYTHONPATH": str(tmp_path)}, **settings) as server:
        await server.ready()
        seen = await every_answer(server, str(tmp_path), tmp_path.name)
        assert {200, 400, 404, 405, 413, 415} <= seen
        assert not {one for one in seen if one >= 500}


def test_openapi_document_lists_every_error_status() -> None:
    kinds, statuses = [RequestError], set[int]()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        statuses.add(kind.status)
    nobody_reads_it = {DisconnectedError.status}
    assert statuses - nobody_reads_it <= {*ERRORS, *REFUSALS}


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("model.toml: x: 1 of a/b and/or c; got 1/2", None),
        ("(at most 8 items)", None),
        ("cannot import name 'X' from 'm' (/srv/models/a/m.py)", "from 'm' (m.py)"),
        ("No such file: '/srv/x/w.safetensors'", "No such file: 'w.safetensors'"),
        ("redis://me:pw@host:6379/0 failed", "redis://host:6379/0 failed"),
        ("got file:///srv/repo/x", "got x"),
        ("at /opt/a/b.cpp:33, in", "at b.cpp:33, in"),
        ('boom:   File "m.py", line 3, in load', "boom:"),
        ("boom\nTraceback (most recent call last)\n  File", "boom"),
    ],
)
def test_foreign_error_text_is_stripped(message: str, reply: str | None) -> None:
    said = public(message)
    assert said == message if reply is None else said.endswith(reply)
    tells_nothing(said)

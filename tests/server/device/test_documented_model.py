"""The classes, the request and the client of YOUR_MODEL.md, as printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock

PAGE = (Path(__file__).parents[3] / "model_server" / "YOUR_MODEL.md").read_text()
MODULES: dict[str, str] = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL))
BODY, ANSWER = re.findall(r"predict -d '(.*)'\n```\n\n```json\n(.*)\n", PAGE)[0]
MOST_S = 60.0
"""Time in which torch is imported."""


async def loaded(server: Server) -> None:
    """Wait until the server is ready."""
    async with httpx.AsyncClient(timeout=MOST_S) as http, asyncio.timeout(MOST_S):
        while True:
            try:
                if (await http.get(f"{server.url}/v2/health/ready")).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("module", "answer"),
    [pytest.param("ranker", ANSWER, id="torch"), pytest.param("classifier", '{"predictions":[1]}')],
)
async def test_documented_class_answers_as_printed(
    tmp_path: Path, module: str, answer: str
) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    named = f"{module}:{module.capitalize()}"
    server_settings = {"ENGINE": "torch", "MODEL_CLASS": named, "MODEL_NAME": module}
    async with serving({"PYTHONPATH": path}, **server_settings) as server:
        await loaded(server)
        async with httpx.AsyncClient(timeout=MOST_S) as http:
            found = await http.post(f"{server.url}/v1/models/{module}:predict", content=BODY)
        assert json.loads(found.text) == json.loads(answer)
        if module != "ranker":
            return
        client = MODULES["client"].replace("localhost:8000", server.url.removeprefix("http://"))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", client, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await asyncio.wait_for(process.communicate(), MOST_S)
    assert printed.decode().strip() == "[[10.]]"

"""A repository of several models, served over HTTP: found, indexed, loaded and unloaded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headroom_server.batching_composition.runners import build_runner, largest_batch
from headroom_server.engine import LoadError
from headroom_server.repository.description_file import parse
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelStore
from headroom_server.settings import Settings
from headroom_server.web.application.app import Application
from support.inside import read_and_checked
from support.server_process import serving
from support.server_world import until

pytestmark = pytest.mark.clock

QUICK = "engine = 'emulated'\n[emulated]\nload_s = 0\nfixed_cost_s = 0.001\ninput_size = {size}\n"
ROW: dict[str, Any] = {"instances": [[1, 2]]}


def write(root: Path, **models: str) -> None:
    for name, text in models.items():
        folder = root / name.replace("_", "/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.toml").write_text(text)


def settings_of(root: Path, **more: Any) -> Settings:
    return Settings(model_uri=f"file://{root}", warmup_requests=1, max_batch_size=2, **more)


Connect = Callable[..., Any]


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Connect]:
    made: list[tuple[Models, httpx.AsyncClient]] = []

    async def make(**more: Any) -> httpx.AsyncClient:
        settings = settings_of(tmp_path, **more)
        store = ModelStore(settings, partial(build_runner, settings))
        models = Models(store.configured())
        app = Application(
            models,
            max_body_bytes=4096,
            store=store,
            explicit=settings.model_control == "explicit",
        )
        transport = httpx.ASGITransport(app=app)
        http = httpx.AsyncClient(
            transport=transport,
            base_url="http://server",
            event_hooks={"response": [read_and_checked]},
        )
        made.append((models, http))
        models.start()
        await until(lambda: models.ready)
        return http

    yield make
    for models, http in made:
        models.stop()
        await http.aclose()


async def index(http: httpx.AsyncClient, **body: object) -> list[str]:
    entries = (await http.post("/v2/repository/index", json=body)).json()
    return [" ".join(filter(None, entry.values())) for entry in entries]


async def test_models_answer_under_their_name_and_version(tmp_path: Path, connect: Connect) -> None:
    write(tmp_path, a_1=QUICK.format(size=2), a_3=QUICK.format(size=2), b=QUICK.format(size=1))
    http = await connect(models=("a:1", "a", "b"))
    assert (await http.post("/v1/models/a:predict", json=ROW)).json() == {"predictions": [3.0]}
    body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [7]}]}
    answer = (await http.post("/v2/models/b/infer", json=body)).json()
    assert (answer["model_name"], answer["model_version"]) == ("b", "1")
    body["inputs"][0] |= {"shape": [1, 2], "data": [7, 1]}
    for version, expected in (("1", "1"), ("3", "3")):
        url = f"/v2/models/a/versions/{version}/infer"
        assert (await http.post(url, json=body)).json()["model_version"] == expected
    assert (await http.post("/v2/models/a/infer", json=body)).json()["model_version"] == "3"
    assert (await http.post("/v2/models/a/versions/2/infer", json=body)).status_code == 404
    assert (await http.post("/v1/models/c:predict", json=ROW)).status_code == 404
    ready = (await http.get("/v2/health/ready")).json()
    assert [(one["name"], one["version"], one["phase"]) for one in ready["models"]] == [
        ("a", "1", "ready"),
        ("a", "3", "ready"),
        ("b", "1", "ready"),
    ]


async def test_metrics_of_several_models_are_one_page(tmp_path: Path, connect: Connect) -> None:
    write(tmp_path, a_1=QUICK.format(size=2), a_2=QUICK.format(size=2), b=QUICK.format(size=1))
    http = await connect(models=("a:1", "a:2", "b"))
    await http.post("/v1/models/a:predict", json=ROW)
    await http.post("/v1/models/c:predict", json=ROW)
    await http.post("/v1/models/b:predict", json=ROW)
    families = list(text_string_to_metric_families((await http.get("/metrics")).text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    received = {
        tuple(sample.labels.items()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == "headroom_requests_received_total"
    }
    assert received == {
        (("model", "a"), ("version", "1")): 0.0,
        (("model", "a"), ("version", "2")): 1.0,
        (("model", "b"),): 0.0,
    }
    invalid = [family for family in families if family.name == "headroom_requests_invalid"]
    assert [sample.labels for sample in invalid[0].samples] == [
        {"reason": "unknown_model"},
        {"model": "b", "reason": "invalid_input"},
    ]


async def test_slo_classes_of_a_description_apply_to_requests(
    tmp_path: Path, connect: Connect
) -> None:
    classes = "[classes.batch]\npriority = 9\n"
    write(tmp_path, a=QUICK.format(size=2) + classes, b=QUICK.format(size=2))
    http = await connect()
    asked = {"x-slo-class": "batch"}
    assert (await http.post("/v1/models/a:predict", json=ROW, headers=asked)).status_code == 200
    refused = await http.post("/v1/models/b:predict", json=ROW, headers=asked)
    assert (refused.status_code, "x-slo-class" in refused.json()["error"]) == (400, True)


async def test_models_load_and_unload_while_others_serve(tmp_path: Path, connect: Connect) -> None:
    write(tmp_path, a=QUICK.format(size=2), b_1=QUICK.format(size=1), wrong="x = 1")
    http = await connect(model_control="explicit", models=("a",))
    wrong = "wrong 1 UNAVAILABLE"
    assert await index(http) == ["a 1 READY", "b 1 UNAVAILABLE", wrong]
    assert await index(http, ready=True) == ["a 1 READY"]

    answers: list[int] = []

    async def keep_asking() -> None:
        while True:
            answers.append((await http.post("/v1/models/a:predict", json=ROW)).status_code)

    asking = asyncio.create_task(keep_asking())
    assert (await http.post("/v2/repository/models/b/load")).status_code == 200
    one = {"instances": [[5]]}
    assert (await http.post("/v1/models/b:predict", json=one)).json() == {"predictions": [5.0]}
    write(tmp_path, b_2=QUICK.format(size=2))
    assert (await http.post("/v2/repository/models/b/load", json={})).status_code == 200
    assert (await http.post("/v1/models/b:predict", json=ROW)).json() == {"predictions": [3.0]}
    assert await index(http) == ["a 1 READY", "b 1 UNAVAILABLE", "b 2 READY", wrong]
    assert (await http.post("/v2/repository/models/b/unload")).status_code == 200
    assert (await http.post("/v1/models/b:predict", json=ROW)).status_code == 404
    assert (await http.get("/v2/health/ready")).status_code == 200
    asking.cancel()
    assert set(answers) == {200}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("wrong/load", b"", 400, "model 'wrong' is not loaded: .*x: unknown field"),
        ("none/load", b"", 400, r"the repository has no model 'none'; it has \['a', 'wrong'\]"),
        ("a..a%2f/load", b"", 404, ""),
        ("..%2fa/load", b"", 404, ""),
        ("-/load", b"", 400, "a model's name must consist of letters"),
        ("none/unload", b"", 404, "'none' is not served"),
        ("a/load", b"{", 400, "not JSON"),
        ("a/load", b"[]", 400, "the body: "),
        (
            "a/load",
            b'{"config": "{}"}',
            400,
            "config: unknown parameter; .*read from the repository",
        ),
        ("a/load", b'{"parameters": {"config": "{}"}}', 400, "read from the repository"),
        ("a/load", b'{"parameters": {"file:1/model.pt": "AAAA"}}', 400, "read from the repository"),
        ("a/load", b'{"parameters": 1}', 400, "parameters: must be an object"),
        ("a/unload", b"x" * 70_000, 413, "65536 bytes"),
    ],
)
async def test_refused_control_request_changes_nothing(
    tmp_path: Path, connect: Connect, path: str, body: bytes, status: int, words: str
) -> None:
    write(tmp_path, a=QUICK.format(size=2), wrong="x = 1")
    http = await connect(model_control="explicit", models=("a",))
    answer = await http.post(f"/v2/repository/models/{path}", content=body)
    assert answer.status_code == status
    assert re.search(words, answer.text.replace('\\"', '"'))
    assert str(tmp_path) not in answer.text
    assert await index(http, ready=True) == ["a 1 READY"]


async def test_openapi_document_describes_the_extension(tmp_path: Path, connect: Connect) -> None:
    write(tmp_path, a=QUICK.format(size=2))
    paths = (await (await connect()).get("/openapi.json")).json()["paths"]
    described = {path: item["post"] for path, item in paths.items() if "/repository/" in path}
    assert sorted(described) == [
        "/v2/repository/index",
        "/v2/repository/models/{name}/load",
        "/v2/repository/models/{name}/unload",
    ]
    assert all(
        {"200", "400", "403"} <= operation["responses"].keys() for operation in described.values()
    )


async def test_models_stay_without_explicit_control(tmp_path: Path, connect: Connect) -> None:
    write(tmp_path, a=QUICK.format(size=2))
    http = await connect()
    for verb in ("load", "unload"):
        answer = await http.post(f"/v2/repository/models/a/{verb}")
        assert answer.status_code == 403
        assert "HEADROOM_MODEL_CONTROL=explicit" in answer.json()["error"]
    assert await index(http) == ["a 1 READY"]


def test_batch_size_of_a_description_overrides_the_settings() -> None:
    settings = Settings(max_batch_size=8)
    for text, largest in [
        ("architecture = 'a'", 8),
        ("architecture = 'a'\nmax_batch_size = 2", 2),
        ("architecture = 'a'\nbatches = [1, 16]", 16),
    ]:
        assert largest_batch(settings, parse(text.encode(), "model.toml")) == largest
    assert largest_batch(settings, None) == 8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "no model is configured"),
        ({"model_uri": "s3://bucket/model"}, "HEADROOM_MODEL_URI: .* got s3://bucket/model"),
        (
            {"model_uri": "file:///no/such"},
            "must be a folder with models; got /no/such .No such file",
        ),
    ],
)
def test_configuration_without_a_model_is_refused(settings: dict[str, str], words: str) -> None:
    configured = Settings(**settings)
    with pytest.raises(LoadError, match=words):
        ModelStore(configured, partial(build_runner, configured)).configured()


async def test_invalid_repository_ends_the_process_before_it_listens(tmp_path: Path) -> None:
    write(tmp_path, a=QUICK.format(size=2), b="x = 1", c="y = 2")
    async with serving(ENGINE="torch", MODEL_URI=f"file://{tmp_path}") as server:
        _, log = await asyncio.wait_for(server.process.communicate(), 20)
        assert server.process.returncode == 2
    for line in ("model b, version 1: model.toml: x: unknown", "model c, version 1: model.toml: y"):
        assert line.encode() in log
    assert b"Traceback" not in log


async def test_drain_finishes_all_models_of_a_repository(tmp_path: Path) -> None:
    write(tmp_path, a=QUICK.format(size=2), b=QUICK.format(size=2))
    uri = f"file://{tmp_path}"
    async with serving(ENGINE="torch", MODEL_URI=uri, DRAIN_DELAY_S=0) as server:
        await server.ready()
        async with httpx.AsyncClient(base_url=server.url) as http:
            for name in "ab":
                answer = await http.post(f"/v1/models/{name}:predict", json=ROW)
                assert answer.json() == {"predictions": [3.0]}
        server.process.terminate()
        assert await asyncio.wait_for(server.process.wait(), 10) == 0

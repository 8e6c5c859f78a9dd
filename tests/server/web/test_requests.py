"""Requests over HTTP: valid ones are answered, invalid ones refused with field and rule."""

from __future__ import annotations

from typing import Any

import pytest

from support.server_world import Start, balanced_metrics

pytestmark = pytest.mark.clock


def v2(data: Any, shape: list[int], **fields: Any) -> dict[str, Any]:
    tensor = {"name": "x", "shape": shape, "datatype": "FP64", "data": data}
    return {"inputs": [tensor | fields]}


async def test_typed_json_gives_one_prediction_per_instance(start: Start) -> None:
    world = await start()
    answer = await world.predict([1.0, 2.0], [3.0, 4.0])
    assert (answer.status_code, answer.json()) == (200, {"predictions": [3.0, 7.0]})


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]]], ids=["flat", "nested"])
async def test_v2_request_is_answered_with_tensors(start: Start, data: Any) -> None:
    world = await start()
    body = v2(data, [2, 2]) | {"id": "abc", "outputs": [{"name": "sum"}]}
    answer = await world.http.post("/v2/models/m/infer", json=body)
    assert answer.json() == {
        "model_name": "m",
        "model_version": "1",
        "id": "abc",
        "outputs": [{"name": "sum", "shape": [2], "datatype": "FP64", "data": [3.0, 7.0]}],
    }


async def test_further_try_is_counted_on_arrival_also_if_it_is_refused(start: Start) -> None:
    world = await start()
    body = v2([1, 2], [1, 2])
    for header, value in (
        ("x-stainless-retry-count", "1"),
        ("x-envoy-attempt-count", "1"),
        ("a", "b"),
    ):
        await world.http.post("/v2/models/m/infer", json=body, headers={header: value})
    assert (await balanced_metrics(world))["headroom_requests_retried_total"] == 1
    world.runner.drain()
    await world.http.post("/v2/models/m/infer", json=body, headers={"x-retry-attempt": "1"})
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_received_total"] == 4
    assert seen["headroom_requests_retried_total"] == 2


BAD_V1 = [
    pytest.param(b"{", 400, "not_json", "the body is not JSON", id="not JSON"),
    pytest.param(b"\xff", 400, "not_json", "the body is not JSON", id="not UTF-8"),
    pytest.param(b"[" * 3000, 400, "not_json", "the body is not JSON", id="nested too deeply"),
    pytest.param(
        b'{"instances":[[1,NaN]]}', 400, "invalid_input", "0.1: must be a finite", id="NaN"
    ),
    pytest.param(b"[]", 400, "invalid_input", "the body", id="no object"),
    pytest.param(b"{}", 400, "invalid_input", "instances", id="no instances"),
    pytest.param(b'{"instances":[]}', 400, "invalid_input", "at least 1 item", id="empty"),
    pytest.param(b'{"instances":{}}', 400, "invalid_input", "instances", id="no list"),
    pytest.param(
        b'{"instances":[[1]]}',
        400,
        "invalid_input",
        "must have at least 2 items; got 1 item",
        id="shape",
    ),
    pytest.param(
        b'{"instances":[1]}', 400, "invalid_input", "valid array; got an integer", id="too flat"
    ),
    pytest.param(
        b'{"instances":[[1,"2"]]}',
        400,
        "invalid_input",
        "0.1: must be a valid number; got a string",
        id="text",
    ),
    pytest.param(
        b'{"instances":[[true,1]]}',
        400,
        "invalid_input",
        "0.0: must be a valid number; got a boolean",
        id="boolean",
    ),
    pytest.param(b'{"instances":[[null,1]]}', 400, "invalid_input", "got null", id="null"),
    pytest.param(
        b'{"instances":[{"y":[1,2]}]}',
        400,
        "invalid_input",
        "instances.0.x: is required",
        id="wrong name",
    ),
    pytest.param(
        b'{"instances":[[1,2],[1,2],[1,2],[1,2],[1,2]]}',
        413,
        "too_wide",
        "at most 4 items, the largest batch; got 5",
        id="wider than a batch",
    ),
    pytest.param(
        b" " * 4097, 413, "too_large", "must have at most 4096 bytes; got 4097", id="too large"
    ),
    pytest.param(
        b'{"instances":[[1,' + b"9" * 400 + b"]]}", 400, None, "", id="a number of 400 digits"
    ),
]


@pytest.mark.parametrize(("body", "status", "reason", "words"), BAD_V1)
async def test_invalid_typed_json_causes_no_batch(
    start: Start, body: bytes, status: int, reason: str | None, words: str
) -> None:
    world = await start()
    answer = await world.http.post("/v1/models/m:predict", content=body)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_received_total"] == 0
    assert reason is None or seen[f"headroom_requests_invalid_total{{{reason}}}"] == 1
    assert world.engine.batches == []


BAD_V2 = [
    pytest.param(
        v2([1, 2], [1, 2], name="y"), "inputs must be exactly ['x']; got ['y']", id="name"
    ),
    pytest.param(
        v2([1, 2], [1, 2], datatype="FP32"), "datatype must be FP64; got 'FP32'", id="datatype"
    ),
    pytest.param(v2([1, 2], [1, 3]), "shape must be [1, 2]; got [1, 3]", id="shape"),
    pytest.param(v2([1, 2], []), "inputs.x.shape must have the batch", id="no dimension"),
    pytest.param(v2([], [0, 2]), "at least 1 item; got 0", id="no item"),
    pytest.param(v2([1, 2], [-1, 2]), "at least 1 item; got -1", id="negative batch"),
    pytest.param(v2([1], [1, 2]), "2 elements for shape [1, 2]; got 1", id="too few"),
    pytest.param(v2([1, [2]], [1, 2]), "element 1 is a list", id="half nested"),
    pytest.param(
        v2([1, 2], [True, 2]), "inputs.0.shape must be a list of integers", id="shape of booleans"
    ),
    pytest.param(v2({}, [1, 2]), "inputs.x.data must be a list", id="data is no list"),
    pytest.param(v2([1, 2], [1, 2]) | {"outputs": [{"name": "z"}]}, "got 'z'", id="output"),
    pytest.param(v2([1, 2], [1, 2]) | {"id": 5}, "id must", id="id is no text"),
    pytest.param({"inputs": []}, "inputs", id="no inputs"),
    pytest.param([], "the body must be a JSON object", id="no object"),
]


@pytest.mark.parametrize(("body", "words"), BAD_V2)
async def test_invalid_v2_request_is_reported_with_field_and_rule(
    start: Start, body: Any, words: str
) -> None:
    world = await start()
    answer = await world.http.post("/v2/models/m/infer", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert world.engine.batches == []


async def test_error_quotes_at_most_a_line_of_the_request(start: Start) -> None:
    world = await start()
    answer = await world.http.post("/v2/models/m/infer", json=v2([1, 2], [1, 2], name="y" * 3000))
    assert answer.status_code == 400
    assert len(answer.text) < 300


async def test_responses_never_redirect(start: Start) -> None:
    world = await start()
    answer = await world.http.post("/v2/models/m/infer/", headers={"host": "elsewhere"})
    assert answer.status_code == 404


async def test_unknown_model_is_not_found(start: Start) -> None:
    world = await start()
    answer = await world.http.post("/v1/models/other:predict", json={"instances": [[1, 2]]})
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "this server serves 'm'; got 'other'"},
    )
    assert (await world.http.get("/v2/models/other")).status_code == 404


async def test_unknown_path_or_method_names_what_the_server_has(start: Start) -> None:
    world = await start()
    nowhere = await world.http.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()) == (
        404,
        {"error": "no such path: /nowhere; GET /docs lists all paths"},
    )
    wrong = await world.http.get("/v1/models/m:predict")
    assert (wrong.status_code, wrong.json()) == (
        405,
        {"error": "the method must be POST for /v1/models/m:predict; GET /docs lists all paths"},
    )
    long = (await world.http.get("/" + 900 * "x")).json()["error"]
    assert len(long) < 300


async def test_drain_is_not_ready_and_answers_until_the_intake_closes(start: Start) -> None:
    world = await start()
    world.runner.drain()
    assert (await world.http.get("/v2/health/ready")).json()["phase"] == "draining"
    answer = await world.predict([1, 1])
    assert (answer.status_code, answer.headers["connection"]) == (200, "close")
    world.runner.close_intake()
    answer = await world.predict([1, 1])
    assert (answer.status_code, answer.headers["connection"]) == (503, "close")
    assert (await world.http.get("/v2/health/live")).status_code == 200
    seen = await balanced_metrics(world)
    assert (seen["headroom_ready"], seen["headroom_draining"]) == (0, 1)


async def test_ready_and_metadata_describe_the_model(start: Start) -> None:
    world = await start()
    ready = (await world.http.get("/v2/health/ready")).json()
    assert (ready["ready"], ready["phase"], ready["emulated"]) == (True, "ready", True)
    assert {"init", "load", "warm", "selftest", "ready"} == set(ready["phase_seconds"])
    assert ready["self_test"]["passed"] is True
    assert [(one["items"], one["length"]) for one in ready["shapes"]] == [
        (1, 0), (2, 0), (3, 0), (4, 0)
    ]  # fmt: skip
    assert all(one["first_seconds"] > 0 and one["seconds"] > 0 for one in ready["shapes"])
    assert (ready["compile"], ready["suspected"]) == (None, False)
    model = (await world.http.get("/v2/models/m")).json()
    assert model["inputs"] == [{"name": "x", "datatype": "FP64", "shape": [-1, 2]}]
    assert model["parameters"] == {"device": "none", "emulated": True, "max_batch_size": 4}
    assert (await world.http.get("/v2/models/m/ready")).status_code == 200
    assert (await world.http.get("/v2")).json()["name"] == "headroom"


async def test_documentation_shows_the_loaded_model(start: Start) -> None:
    world = await start()
    paths = (await world.http.get("/openapi.json")).json()["paths"]
    predict, infer = paths["/v1/models/m:predict"]["post"], paths["/v2/models/m/infer"]["post"]
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for operation in (predict, infer)
    ]
    plain, named = bodies[0]["properties"]["instances"]["anyOf"]
    assert (plain["minItems"], plain["maxItems"]) == (1, 4)
    pair = {"maxItems": 2, "minItems": 2, "type": "array"}
    assert pair.items() <= plain["items"].items()
    assert named["items"]["properties"].keys() == {"x"}
    (example,) = bodies[1]["examples"]
    assert (await world.http.post("/v2/models/m/infer", json=example)).status_code == 200
    for operation in (predict, infer):
        assert {"200", "400", "413", "429", "503"} <= set(operation["responses"])
    documented = await world.http.get("/docs")
    assert documented.status_code == 200
    assert documented.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in documented.headers["content-security-policy"]
    page = documented.text
    assert "POST /v2/models/m/infer" in page
    assert not [word for word in ("<script", "http://", "https://", "//cdn") if word in page]

"""Requests over HTTP: responses, invalid input, back-pressure, deadlines, failures, accounts."""

from __future__ import annotations

import asyncio
from array import array
from typing import Any

import orjson
import pytest

from headroom_server.connection import STATE_KEY, Connection
from headroom_server.engine import DeviceLostError
from server_world import Start, balanced_metrics, until

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
        b'{"instances":[[1,NaN]]}', 400, "invalid_input", "0.1: Input should be a finite", id="NaN"
    ),
    pytest.param(b"[]", 400, "invalid_input", "the body", id="no object"),
    pytest.param(b"{}", 400, "invalid_input", "instances", id="no instances"),
    pytest.param(b'{"instances":[]}', 400, "invalid_input", "at least 1 item", id="empty"),
    pytest.param(b'{"instances":{}}', 400, "invalid_input", "instances", id="no list"),
    pytest.param(
        b'{"instances":[[1]]}', 400, "invalid_input", "at least 2 items after", id="shape"
    ),
    pytest.param(
        b'{"instances":[1]}', 400, "invalid_input", "valid array; got an integer", id="too flat"
    ),
    pytest.param(
        b'{"instances":[[1,"2"]]}',
        400,
        "invalid_input",
        "0.1: Input should be a valid number; got a string",
        id="text",
    ),
    pytest.param(
        b'{"instances":[[true,1]]}',
        400,
        "invalid_input",
        "0.0: Input should be a valid number; got a boolean",
        id="boolean",
    ),
    pytest.param(b'{"instances":[[null,1]]}', 400, "invalid_input", "got null", id="null"),
    pytest.param(
        b'{"instances":[{"y":[1,2]}]}',
        400,
        "invalid_input",
        "instances.0.x: Field required",
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
    assert (await world.http.get("/nowhere")).status_code == 404
    assert (await world.http.get("/v1/models/m:predict")).status_code == 405


async def test_waiting_requests_are_executed_together(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    other_lengths = [asyncio.create_task(world.predict([i, i])) for i in range(4)]
    await world.waiting(4)
    world.engine.free.set()
    assert [(await one).json()["predictions"] for one in other_lengths] == [[0], [2], [4], [6]]
    await first
    assert world.engine.batches == [1, 4]
    seen = await balanced_metrics(world)
    assert seen["headroom_batch_size_sum"] == 5
    assert seen["headroom_batch_size_count"] == 2
    assert seen["headroom_requests_total{ok}"] == 5
    assert seen["headroom_request_duration_seconds_count"] == 5


async def test_full_queue_refuses_with_retry_after(start: Start) -> None:
    world = await start(max_waiting=2)
    accepted = [await world.hold_device()]
    accepted += [asyncio.create_task(world.predict([1, 1])) for _ in range(2)]
    await world.waiting(2)
    refused = await world.predict([1, 1])
    assert refused.status_code == 429
    assert refused.headers["retry-after"] in {"1", "2"}  # next to nothing, and up to a second more
    during = await balanced_metrics(world)
    assert during["headroom_requests_waiting"] == 2
    assert during["headroom_requests_running"] == 1
    assert during["headroom_oldest_waiting_seconds"] > 0
    world.engine.free.set()
    assert {(await one).status_code for one in accepted} == {200}
    seen = await balanced_metrics(world)
    assert (seen["headroom_requests_total{ok}"], seen["headroom_requests_total{refused}"]) == (3, 1)


async def test_deadline_passing_in_the_queue_is_answered_at_once(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    late = await world.predict([1, 1], **{"x-request-timeout": "0.05"})
    assert late.status_code == 504
    world.engine.free.set()
    await first
    assert world.engine.batches == [1]
    assert (await balanced_metrics(world))["headroom_requests_total{expired}"] == 1


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "1e9"])
async def test_invalid_deadline_is_refused(start: Start, value: str) -> None:
    world = await start()
    answer = await world.predict([1, 1], **{"x-request-timeout": value})
    assert answer.status_code == 400
    assert "x-request-timeout must be a number of seconds above 0" in answer.json()["error"]


@pytest.mark.parametrize("waiting", [True, False], ids=["while it waits", "while it runs"])
async def test_disconnected_client_cancels_its_request(start: Start, waiting: bool) -> None:
    world = await start()
    connection = Connection()
    first = await world.hold_device() if waiting else None
    world.engine.began.clear()
    if not waiting:
        world.engine.hold()
    body = orjson.dumps({"instances": [[1, 1]]})
    sent = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/models/m:predict",
        "headers": [],
        "query_string": b"",
        "state": {STATE_KEY: connection},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    request = asyncio.create_task(world.app(scope, receive, send))
    await (world.waiting(1) if waiting else asyncio.to_thread(world.engine.began.wait, 5))
    connection.lost()
    await request
    assert sent[0]["status"] == 499
    world.engine.free.set()
    if first is not None:
        await first
    assert (await balanced_metrics(world))["headroom_requests_total{cancelled}"] == 1


async def test_failing_batch_fails_only_its_requests(start: Start) -> None:
    world = await start()
    world.engine.error = RuntimeError("secret detail")
    answer = await world.predict([1, 1])
    assert answer.status_code == 500
    assert "secret" not in answer.text
    world.engine.error = None
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert (await world.http.get("/v2/health/live")).status_code == 200
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 1


async def test_lost_device_fails_liveness_and_answers_all_requests(start: Start) -> None:
    world = await start()
    running = await world.hold_device()
    waiting = asyncio.create_task(world.predict([1, 1]))
    await world.waiting(1)
    world.engine.error = DeviceLostError("CUDA error: an illegal memory access was encountered")
    world.engine.free.set()
    assert [(await one).status_code for one in (running, waiting)] == [500, 500]
    assert (await world.http.get("/v2/health/live")).status_code == 503
    assert (await world.http.get("/v2/health/ready")).status_code == 503
    assert (await world.predict([1, 1])).status_code == 503
    assert (await balanced_metrics(world))["headroom_ready"] == 0


async def test_hanging_device_fails_liveness(start: Start) -> None:
    world = await start(stall_timeout_s=0.05)
    request = await world.hold_device()
    await until(lambda: not world.runner.live)
    assert (await world.http.get("/v2/health/live")).status_code == 503
    world.engine.free.set()
    await request
    assert (await world.http.get("/v2/health/live")).status_code == 200


async def test_hanging_batch_fails_the_queue_and_closes_the_intake(
    start: Start,
) -> None:
    world = await start(stall_timeout_s=0.05)
    running = await world.hold_device()
    waiting = asyncio.create_task(world.predict([1, 1]))
    await world.waiting(1)
    await until(lambda: not world.runner.live)
    assert (await world.http.get("/v2/health/ready")).status_code == 503
    refused = await world.predict([1, 1])
    assert refused.status_code == 503
    world.runner.watch()
    assert [(await one).status_code for one in (running, waiting)] == [500, 500]
    assert (await balanced_metrics(world))["headroom_ready"] == 0
    world.engine.free.set()
    await until(lambda: world.runner.ready)
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert world.engine.batches == [1, 1]
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 2


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param([], id="no answer"),
        pytest.param([{"sum": array("d", [1])}] * 2, id="too many answers"),
        pytest.param([{}], id="no output"),
        pytest.param([{"sum": array("d", [1, 2])}], id="too many numbers"),
        pytest.param([{"sum": array("q", [1])}], id="another type"),
        pytest.param([{"sum": None}], id="no numbers"),
        pytest.param([None], id="nothing"),
        pytest.param(None, id="nothing at all"),
    ],
)
async def test_undeclared_outputs_fail_only_their_batch(start: Start, outputs: Any) -> None:
    world = await start()
    world.engine.forged = [outputs]
    answer = await asyncio.wait_for(world.predict([1, 1]), 5)
    assert answer.status_code == 500
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 1


async def test_nan_output_fails_only_its_request(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    good = asyncio.create_task(world.predict([1, 1]))
    bad = asyncio.create_task(world.predict([1.7e308, 1.7e308]))
    await world.waiting(2)
    world.engine.free.set()
    assert ((await good).status_code, (await bad).status_code) == (200, 500)
    await first
    assert world.engine.batches == [1, 2]


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


async def test_deadline_that_no_server_could_meet_is_neither_load_nor_a_miss(
    start: Start,
) -> None:
    world = await start()
    await world.predict([1, 1])
    answer = await world.predict([1, 1], **{"x-request-timeout": "0.0000001"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("x-request-timeout, or the deadline of")
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_received_total"] == 1
    assert seen["headroom_requests_invalid_total{impossible_deadline}"] == 1
    assert seen["headroom_deadlines_missed_total"] == 0

"""Any spec is refused with its fields, or gives children and a decision: soon, and without a crash.

Valid specs are changed in a few places: numbers at their bounds and beyond, other types, absurd
units, any Unicode, deep nesting, long lists, unknown fields. Each goes the way of a stored object:
parser, children, policy and one decision.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from headroom.api import InferenceService, InvalidSpec
from headroom.api.schema.crd import custom_resource_definition
from headroom.api.service_spec.schedules import floor_at
from headroom.resources import desired_children
from headroom.scaling import CostModel, Observation, Pod, PodState, State, decide
from support.fakes_scaling import served_sample
from support.fuzzing import fuzz
from support.service_world import body
from support.structural_objects import Schema

SPEC: Schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["spec"]
MOST_S = 2.0
"""CPU time of one spec."""
LONGEST_MESSAGE = 32_768
"""Longest message of a condition, in Kubernetes."""
NOW_S = 1_800_000_000.0

RICH: dict[str, Any] = {
    "runtime": {
        "image": "registry.example/server:1",
        "args": ["--quiet"],
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"memory": "4Gi", "cpu": "2"}},
        "podTemplate": {"metadata": {"labels": {"team": "vision"}}, "spec": {"nodeSelector": {}}},
    },
    "model": {"name": "resnet", "uri": "s3://models/resnet", "sizeLimit": "10Gi"},
    "accelerator": {"resource": "nvidia.com/gpu", "count": 2},
    "warmup": {"requests": 8, "timeout": "5m", "maxLatency": "400ms"},
    "slo": {
        "latency": {"percentile": 99, "target": "1.5s"},
        "queueDepth": 8,
        "utilizationCeiling": 0.6,
    },
    "scaling": {
        "minReplicas": 2,
        "maxReplicas": 7,
        "priority": -3,
        "scaleUp": {"stabilizationWindow": "10s", "rate": {"period": "1m", "percent": 100}},
        "scaleDown": {"stabilizationWindow": "5m", "rate": {"period": "30s", "replicas": 1}},
        "schedules": [
            {"name": "day", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "minReplicas": 4}
        ],
    },
    "routing": {"mode": "Service", "requestTimeout": "1m", "trustedCIDRs": ["10.0.0.0/8"]},
    "drain": {"gracePeriod": "1m"},
    "rollout": {"maxSurge": "50%", "maxUnavailable": 1},
    "commonMetadata": {"labels": {"team": "vision"}, "annotations": {"example.com/a": "b"}},
}
BASES = (body()["spec"], RICH)


def nested(depth: int, inner: Any) -> Any:
    """Nest lists and objects in turn."""
    for level in range(depth):
        inner = [inner] if level % 2 else {"spec": inner}
    return inner


NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, -0.0, 0.5, 1e-320, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, 10**30, 10**4000),
    *(1e300, -1e300, math.nan, math.inf, -math.inf),
)
TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "\u202e1s",
        "\uff11\uff53",
        "é" * 300,
        "a" * 100_000,
        "{{.}}",
        "../../etc",
    ),
    *("0s", "-1s", "1ns", "999999h", "9999999h", "1e9s", "99999999999999999999s", "1s1s", ".5s"),
    *("-1", "1e30Gi", "99999999999999999999Ei", "1Zi", "NaN", "٣Gi", "0", "1.5", "1e400"),
    *("@every 1s", "* * * * * *", "60 25 32 13 8", "*/0 * * * *", "0-59/99 * * * *"),
    *("Mars/Olympus", "10.0.0.0/33", "::/129", "file:///etc/passwd", "http://[::1"),
)
SHAPES: tuple[Callable[[], Any], ...] = (
    *(lambda: None, lambda: True, list, dict, lambda: [None], lambda: {"": None}),
    *(lambda: nested(40, 1), lambda: nested(400, "x"), lambda: nested(4000, None)),
    *(lambda: ["x"] * 20_000, lambda: [{}] * 5_000, lambda: {f"k{n}": n for n in range(5_000)}),
)
VALUES = (
    st.sampled_from(NUMBERS)
    | st.sampled_from(TEXTS)
    | st.sampled_from(SHAPES).map(lambda shape: shape())
    | st.text(max_size=8)
    | st.integers()
    | st.floats()
)


def fields(schema: Schema, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Schema]]:
    """Return every field with its schema; the first item of a list stands for all."""
    found = [(path, schema)] if path else []
    for name, inner in schema.get("properties", {}).items():
        found += fields(inner, (*path, name))
    if isinstance(schema.get("items"), dict):
        found += fields(schema["items"], (*path, "0"))
    return found


FIELDS = fields(SPEC)


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid spec with one to four changes."""
    spec: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 4))):
        path, schema = draw(st.sampled_from(FIELDS))
        kind = draw(st.sampled_from(("any", "bound", "unknown", "twice", "removed")))
        if kind == "unknown":
            path = (*path[:-1], draw(st.sampled_from(("kind", "Image", "_", "spec", "\x00"))))
        put(spec, path, draw, schema, kind)
    return spec


def put(spec: Any, path: tuple[str, ...], draw: st.DrawFn, schema: Schema, kind: str) -> None:
    """Change one place; missing parents are made, other types stay."""
    *parents, last = path
    inner = spec
    for key, following in zip(parents, path[1:], strict=True):
        if isinstance(inner, list):
            if not inner:
                inner.append([] if following == "0" else {})
            inner = inner[0]
        elif isinstance(inner, dict):
            inner = inner.setdefault(key, [] if following == "0" else {})
        else:
            return
    if isinstance(inner, list) and last == "0":
        if kind == "twice" and inner:
            inner.extend(inner * draw(st.sampled_from((1, 30, 3000))))
        elif kind == "removed":
            inner.clear()
        else:
            inner[:1] = [value_for(draw, schema, kind)]
    elif isinstance(inner, dict):
        if kind == "removed":
            inner.pop(last, None)
        else:
            inner[last] = value_for(draw, schema, kind)


def value_for(draw: st.DrawFn, schema: Schema, kind: str) -> Any:
    """Draw a value; for a bound one that is just allowed or just not."""
    bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
    if kind == "bound" and bounds:
        return draw(st.sampled_from(bounds)) + draw(st.sampled_from((-1, 0, 1, 1e-9)))
    if kind == "bound" and "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if kind == "bound" and "maxLength" in schema:
        return "a" * (schema["maxLength"] + draw(st.sampled_from((-1, 0, 1))))
    return draw(VALUES)


def goes_through(spec: Any) -> bool:
    """Take a spec through parser, children and a decision; return whether it is valid."""
    start_s = time.process_time()
    try:
        service = InferenceService.parse(body(spec=spec))
    except InvalidSpec as refused:
        problems, message = refused.problems, str(refused)
    else:
        problems, message = (), ""
    if problems:
        assert all(one.field.startswith("spec") and one.rule for one in problems)
        assert len(message) <= LONGEST_MESSAGE
        message.encode(errors="surrogatepass")
        assert time.process_time() - start_s < MOST_S
        return False
    json.dumps(desired_children(service), allow_nan=False).encode()
    scaling = service.spec.scaling
    policy = service.to_policy(floor=floor_at(scaling.schedules, scaling.min_replicas, NOW_S))
    state = State.initial()
    for tick in range(1, 3):
        decision, state = decide(policy, state, observed(NOW_S + tick * policy.tick_s, tick))
        assert policy.min_replicas <= decision.replicas <= policy.max_replicas
        decision.message.encode()
    json.dumps(state.to_checkpoint(), allow_nan=False)
    assert time.process_time() - start_s < MOST_S
    return True


def observed(now_s: float, tick: int) -> Observation:
    """Return a tick of one replica under load."""
    served = 20.0 * tick
    cost = CostModel(fixed_s=0.15, per_item_s=0.05, max_batch=4)
    sample = served_sample("a", now_s, served, waiting=3, batch_s=0.2, cost=cost)
    pod = Pod(uid="a", state=PodState.READY, created_s=NOW_S - 60.0, ready_s=NOW_S - 30.0)
    return Observation(now_s=now_s, current=1, pods=(pod,), samples=(sample,))


@pytest.mark.parametrize("spec", BASES, ids=["minimal", "rich"])
def test_unchanged_spec_is_valid(spec: dict[str, Any]) -> None:
    assert goes_through(spec)


@pytest.mark.parametrize("depth", [10, 60, 100, 1_000, 9_000])
def test_deep_nesting_is_refused_or_ignored(depth: int) -> None:
    """The API server stores 10 000 levels where a schema preserves unknown fields."""
    for field in ("runtime", "slo", "unknown"):
        goes_through({**RICH, field: nested(depth, 1)})
    template = {"spec": {"affinity": nested(depth, 1)}}
    assert goes_through({**RICH, "runtime": {**RICH["runtime"], "podTemplate": template}}) == (
        depth <= 60
    )


@pytest.mark.parametrize(
    "value", [math.nan, -math.inf, "\ud800", 10**5000], ids=["nan", "inf", "half", "long"]
)
@pytest.mark.parametrize("place", ["affinity", "tolerations"])
def test_values_that_no_manifest_can_contain_are_refused(place: str, value: Any) -> None:
    template = {"spec": {place: [{"key": value}]}}
    assert not goes_through({**RICH, "runtime": {**RICH["runtime"], "podTemplate": template}})


def test_changed_spec_is_refused_or_gives_children_and_a_decision() -> None:
    valid: list[bool] = []
    fuzz(mutations(), lambda spec: valid.append(goes_through(spec)), examples=150)
    assert any(valid)
    assert not all(valid)

"""`routing.classes` with promises of their own: refused ones, and the decision's input."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api.invalid_spec import InvalidSpec
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.values.tokens import Target, TokenTargets
from support.service_world import service

HEADROOM = {"image": "registry.example/headroom-model-server:1"}
SLO = {
    "timeToFirstToken": {"percentile": 90, "target": "2s"},
    "timePerOutputToken": {"target": "80ms"},
}
FIRST = {"timeToFirstToken": {"percentile": 99, "target": "500ms"}}
OWN = TokenTargets(
    first_token=Target(percentile=0.9, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.08),
)


def promises(*classes: dict[str, Any], slo: dict[str, Any] = SLO) -> tuple[ClassPromise, ...]:
    made = service(spec__runtime=HEADROOM, spec__slo=slo, spec__routing={"classes": list(classes)})
    return made.spec.class_promises


@pytest.mark.parametrize(
    ("own", "targets"),
    [
        pytest.param(
            FIRST,
            TokenTargets(
                first_token=Target(percentile=0.99, seconds=0.5), output_token=OWN.output_token
            ),
            id="one of its own, the other from slo",
        ),
        pytest.param(
            {"latency": {"target": "9s"}},
            TokenTargets(
                first_token=OWN.first_token,
                output_token=OWN.output_token,
                latency=Target(percentile=0.95, seconds=9.0),
            ),
            id="one that slo lacks",
        ),
        pytest.param({"bestEffort": True}, TokenTargets(), id="none"),
    ],
)
def test_class_promise_without_a_field_is_that_of_slo(
    own: dict[str, Any], targets: TokenTargets
) -> None:
    assert promises({"name": "gold", **own}) == (
        ClassPromise(name=SERVICE, targets=OWN),
        ClassPromise(name="gold", targets=targets),
    )


def test_class_promises_where_no_class_differs_are_empty() -> None:
    same = {"name": "same", "timePerOutputToken": {"target": "80ms"}}
    assert promises() == promises({"name": "plain", "priority": 1}, same) == ()
    assert promises({"name": "plain"}, slo={"latency": {"target": "9s"}}) == ()


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        pytest.param(
            {"spec__routing": {"classes": [{"name": "a", **FIRST, "bestEffort": True}]}},
            "spec.routing.classes[0].bestEffort",
            "bestEffort must be false where",
            id="best effort with a promise",
        ),
        pytest.param(
            {
                "spec__slo": {"latency": {"target": "9s"}},
                "spec__routing": {"classes": [{"name": "a", "bestEffort": True}]},
            },
            "spec.routing.classes",
            "slo must set timeToFirstToken or timePerOutputToken where",
            id="a service without tokens",
        ),
        pytest.param(
            {
                "spec__runtime": {
                    "image": "registry.example/tgi:1", "profile": "tgi", "maxBatchSize": 8
                },
                "spec__slo": {"timePerOutputToken": {"target": "80ms"}},
                "spec__routing": {"classes": [{"name": "a", **FIRST}]},
            },
            "spec.routing.classes",
            "where an entry in routing.classes sets timeToFirstToken",
            id="a server without the histogram",
        ),
    ],
)  # fmt: skip
def test_class_promise_that_cannot_hold_is_refused(
    changes: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidSpec) as refused:
        service(**{"spec__runtime": HEADROOM, "spec__slo": SLO, **changes})
    assert any(one.field == field and says in one.rule for one in refused.value.problems)

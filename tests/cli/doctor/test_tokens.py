"""The doctor on services that generate: promises that no replica keeps, unknown costs, pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.facts import Facts
from headroom.cli.commands.doctor.findings import Severity
from support.fakes_doctor import saying, serving

INFEASIBLE = saying("SLOFeasible", "False", "SLOInfeasible")
UNKNOWN = "fixed and per-token cost separately: the load has hardly varied"


def generating(profile: str = "headroom", **generation: Any) -> Facts:
    known = {"sizedBy": "Model", **generation}
    return serving(
        spec__runtime__profile=profile, status__generation=known, status__conditions=[INFEASIBLE]
    )


def promise(name: str, target: str, floor: str | None) -> dict[str, Any]:
    return {"name": name, "target": target, **({} if floor is None else {"floor": floor})}


@pytest.mark.parametrize(
    ("name", "target", "floor", "remedy"),
    [
        ("TimePerOutputToken", "20ms", "25ms",
         "raise spec.slo.timePerOutputToken.target above 25ms"),
        ("TimeToFirstToken", "1s", "1.2s", "raise spec.slo.timeToFirstToken.target above 1.2s"),
        ("Latency", "5s", "unbounded", "use more memory per replica"),
    ],
)  # fmt: skip
def test_a_promise_below_the_floor_is_named_once_with_its_remedy(
    name: str, target: str, floor: str, remedy: str
) -> None:
    found = examined(generating(promises=[promise(name, target, floor)]))
    (one,) = [each for each in found if each.finding == "SLOInfeasible"]
    assert one.severity is Severity.PROBLEM
    assert one.why.startswith(f"{name}: an idle replica needs {floor}, the target is {target}")
    assert one.remedy.startswith(remedy)


def test_promises_that_an_idle_replica_keeps_are_not_named() -> None:
    kept = [promise("TimePerOutputToken", "30ms", "25ms"), promise("Latency", "5s", None)]
    (one,) = [each for each in examined(generating(promises=kept)) if "SLO" in each.finding]
    assert one.why == "SLOFeasible is False: as it said"


@pytest.mark.parametrize(
    ("profile", "remedy"),
    [
        ("vllm", "install headroom-vllm-plugin"),
        ("dynamo", "nothing has to be done"),
        ("headroom", "send requests of different lengths"),
    ],
)
def test_an_unknown_cost_is_a_note_that_says_what_to_expose(profile: str, remedy: str) -> None:
    found = examined(generating(profile, sizedBy="Measurement", unknown=[UNKNOWN]))
    (one,) = [each for each in found if each.finding == "CostUnknown"]
    assert one.severity is Severity.NOTE
    assert one.why.endswith(UNKNOWN)
    assert one.remedy.startswith(remedy)


def test_a_known_cost_has_no_finding() -> None:
    found = examined(generating(unknown=[UNKNOWN]))
    assert not [each for each in found if each.finding == "CostUnknown"]


def pair(prefill_scaling: dict[str, Any], decode_scaling: dict[str, Any]) -> Facts:
    """A decode pool, and the prefill pool that it names."""
    decode = serving(spec__prefillRef={"name": "prompts"}, spec__scaling=decode_scaling)
    prefill = serving(
        metadata__name="prompts", metadata__uid="uid-of-prompts", spec__scaling=prefill_scaling
    )
    return replace(decode, services=(*decode.services, *prefill.services))


def test_pools_of_a_pair_with_different_priorities_are_named_with_both() -> None:
    (one,) = [each for each in examined(pair({"priority": 10}, {})) if "Prio" in each.finding]
    assert (one.finding, one.severity) == ("PrioritiesDiffer", Severity.WARNING)
    assert one.why.startswith(
        "its scaling.priority is 0, and that of its prefill pool prompts is 10"
    )
    assert "inferenceservices.headroom.dev/prompts --namespace vision" in one.remedy


@pytest.mark.parametrize("facts", [pair({}, {"priority": 0}), serving()])
def test_equal_priorities_and_single_services_have_no_finding(facts: Facts) -> None:
    assert not [each for each in examined(facts) if "Prio" in each.finding]

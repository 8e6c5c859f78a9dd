"""`headroom plan generation --pools`: two services that can be applied as they are printed."""

from __future__ import annotations

import pytest
import yaml

from cli.plan.plans import plan, report
from headroom.api import InferenceService
from planner.generation_plans import LINE

PROMISES = LINE + " --first-token 3s --output-token 100ms"


def test_both_pools_are_printed_and_the_decode_pool_names_the_other() -> None:
    found = list(yaml.safe_load_all(plan(PROMISES + " --pools chat").stdout))
    prefill, decode = (
        InferenceService.parse(one | {"metadata": one["metadata"] | {"namespace": "a", "uid": "u"}})
        for one in found
    )
    assert (prefill.name, decode.name) == ("chat-prefill", "chat-decode")
    assert decode.spec.prefill_ref is not None
    assert decode.spec.prefill_ref.name == prefill.name
    assert prefill.spec.prefill_ref is None
    first, token = prefill.spec.slo.time_to_first_token, decode.spec.slo.time_per_output_token
    assert first is not None
    assert token is not None
    assert 2.9 < first.target.seconds < 3.0  # without the transfer of 4000 tokens
    assert token.target.seconds == 0.1
    split = report(PROMISES)["split"]
    assert prefill.spec.scaling.max_replicas == 2 * split["prefill"]
    assert decode.spec.scaling.max_replicas == 2 * split["decode"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (LINE + " --first-token 3s --pools chat", "Give --first-token and --output-token"),
        (PROMISES + " --pools 7b", "must be a name of at most 44 characters; got 7b"),
        (PROMISES + " --pools chat --first-token 10ms", "No prefill and decode pools keep these"),
    ],
)
def test_pools_that_cannot_be_planned_say_why(options: str, says: str) -> None:
    result = plan(options)
    assert result.exit_code == 2
    assert says in result.stderr

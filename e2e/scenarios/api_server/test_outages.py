"""The API server fails differently for each verb; `make reliability` tries each fault alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import ControlPlane
from reliability.fault_proxy.calls import Verb
from reliability.fault_proxy.rules import Fault, Refuse, Reset, Rule, Truncate
from reliability.outages.fault_sets import FaultSet
from reliability.outages.outage_lanes import lane
from reliability.outages.outages import run_outage
from reliability.testbed.testbed import shared_cluster

pytestmark = pytest.mark.clock

FAULTS: dict[Verb, Fault] = {
    Verb.GET: Refuse(code=503),
    Verb.LIST: Truncate(),
    Verb.WATCH: Refuse(code=403),  # ends kopf at once
    Verb.CREATE: Reset(taken=True),
    Verb.PATCH: Refuse(code=429, retry_after_s=1),
}
FAULT_S = 6.0


@pytest.mark.timeout(300, func_only=True)
async def test_decisions_resume_soon_after_a_fault_without_other_writes(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    rules = tuple(Rule(fault=fault, verbs=frozenset({verb})) for verb, fault in FAULTS.items())
    async with shared_cluster(control_plane, tmp_path) as on, lane(on) as one:
        outage = await run_outage(one, 0, FaultSet(name="one for each verb", rules=rules), FAULT_S)
    assert outage.holds, outage

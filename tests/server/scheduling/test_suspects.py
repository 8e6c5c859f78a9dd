"""A batch that a request fails costs the tenant of that request, not those that shared it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from headroom_server.device.isolation import Failure, isolate
from headroom_server.scheduling.admission import Caps
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.scheduling.scheduler import Scheduler
from headroom_server.scheduling.suspects import APART_S, KEPT, Suspects

MAX = 32


def batch_s(items: int) -> float:
    return 0.010 + 0.001 * items


class Device:
    """Serves an honest tenant and one whose requests all fail, on a clock of its own."""

    def __init__(self, *, honest_rps: float, bad_rps: float, bad_tenant: str = "bad") -> None:
        self.scheduler: Scheduler[bool] = Scheduler(MAX, Caps(1024, 1 << 30), chance=lambda: 0.5)
        sizes = (1, 2, 4, 8, 16, 32)
        self.scheduler.seed(CostModel.from_warm_up((b, batch_s(b)) for b in sizes), None)
        self.now_s = 0.0
        self.bad_tenant = bad_tenant
        self.every_s = {False: 1.0 / honest_rps, True: 1.0 / bad_rps}
        self.next_s = dict(self.every_s)
        self.latency_s: list[float] = []
        self.refused = self.arrived = 0
        self.batches: list[Counter[str]] = []

    def run(self, until_s: float) -> None:
        while self.now_s < until_s:
            self._arrive()
            sealed = self.scheduler.seal(self.now_s)
            if sealed.batch:
                self._execute(sealed)
            else:
                self.now_s = max(self.now_s, min(self.next_s.values()))

    def _arrive(self) -> None:
        while min(self.next_s.values()) <= self.now_s:
            bad = self.next_s[True] < self.next_s[False]
            at_s, self.arrived = self.next_s[bad], self.arrived + 1
            tenant = self.bad_tenant if bad else "honest"
            entry = QueueEntry(self.arrived, 1, at_s, None, bad, 0, 5, tenant, 4)
            offer = self.scheduler.offer(entry, at_s)
            self.refused += not bad and offer.refusal is not None
            self.refused += sum(not one.payload for one in offer.evicted)
            self.next_s[bad] += self.every_s[bad]

    def _execute(self, sealed: SealedBatch[bool]) -> None:
        self.batches.append(Counter(entry.tenant for entry in sealed.batch))
        failed: list[QueueEntry[bool]] = []
        failure = self._failure(sealed.batch)
        began_s = self.now_s
        if failure is not None:
            steps, outcome = isolate(sealed.batch), None
            try:
                while True:
                    outcome = self._failure(steps.send(outcome))
            except StopIteration as end:
                failed = end.value
        self.latency_s += [self.now_s - one.arrived_s for one in sealed.batch if not one.payload]
        self.scheduler.record_batch(
            sealed, began_s, self.now_s - began_s, whole=not failed, failed=failed
        )

    def _failure(self, part: Sequence[QueueEntry[bool]]) -> Failure | None:
        self.now_s += batch_s(len(part))
        return Failure.ERROR if any(entry.payload for entry in part) else None


@pytest.mark.parametrize(
    ("bad_rps", "p95_s"),
    [
        pytest.param(5, 0.1, id="few: 3.8 s and 13 % refused in one batch with the others"),
        pytest.param(20, 0.15, id="more: 95 % were refused or waited at the end"),
        pytest.param(100, 0.8, id="as many as the device can execute: half of its time"),
        pytest.param(1000, 0.8, id="a flood"),
    ],
)
def test_bad_requests_of_one_tenant_cost_another_no_answer(bad_rps: float, p95_s: float) -> None:
    """The honest one needs 52 % of the device in full batches."""
    device = Device(honest_rps=400, bad_rps=bad_rps)
    device.run(30.0)
    assert device.refused == 0
    assert len(device.latency_s) > 0.97 * 30 * 400
    assert sorted(device.latency_s)[int(0.95 * len(device.latency_s))] < p95_s


def test_tenant_that_fails_shares_no_batch_until_it_has_not_failed_for_long() -> None:
    device = Device(honest_rps=400, bad_rps=5)
    device.run(10.0)
    mixed = [at for at, batch in enumerate(device.batches) if len(batch) == 2]
    assert len(mixed) == 1, "the first failure"


def test_model_that_fails_for_all_is_served_as_before() -> None:
    device = Device(honest_rps=300, bad_rps=2, bad_tenant="honest")
    device.run(30.0)
    assert device.refused == 0
    assert sorted(device.latency_s)[len(device.latency_s) // 2] < 0.04


def test_batches_of_suspects_double_with_success_and_are_halved_by_failure() -> None:
    suspects, sizes = Suspects(8), []
    for outcome in ("bad", "ok", "ok", "bad", "ok", "ok", "ok", "bad", "bad", "bad", "bad"):
        if outcome == "bad":
            suspects.failed(["bad"], 0.0)
        else:
            suspects.succeeded("bad")
        suspects.succeeded("other")
        sizes.append(suspects.apart(0.0).items)
    assert sizes == [1, 2, 4, 2, 4, 8, 8, 4, 2, 1, 1]


def test_suspicion_ends_and_names_are_bounded() -> None:
    suspects = Suspects(8)
    suspects.failed(["early"], 0.0)
    suspects.failed(["late"], 10.0)
    assert set(suspects.apart(10.0).tenants) == {"early", "late"}
    assert set(suspects.apart(APART_S).tenants) == {"late"}
    assert not suspects.apart(APART_S + 10.0).tenants
    suspects.failed((f"{number}" for number in range(3 * KEPT)), 0.0)
    assert len(suspects.apart(0.0).tenants) == KEPT

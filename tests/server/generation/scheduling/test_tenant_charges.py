"""Charges of tenants for their requests, and the turns that follow from them."""

from __future__ import annotations

import pytest

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.waiting.tenant_charges import TenantCharges
from headroom_server.generation.scheduling.waiting.waiting_line import WaitingLine
from headroom_server.scheduling.tenant_shares import TenantShares
from support.generation_world import request


def started(charges: TenantCharges, cached_tokens: int, expected_tokens: int) -> LiveSequence:
    """Start a prompt of 100 tokens of tenant a, of which the cache holds some."""
    one = LiveSequence(request(1, 100, 500, tenant="a"), 0.0)
    one.cached_tokens = one.computed = cached_tokens
    charges.start(one, expected_tokens)
    return one


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
@pytest.mark.parametrize(
    ("cached", "expected", "generated", "running", "at_last"),
    [
        pytest.param(0, 20, 10, 140.0, 120.0, id="shorter than expected: returned at the end"),
        pytest.param(0, 20, 20, 140.0, 140.0, id="as expected"),
        pytest.param(0, 20, 50, 200.0, 200.0, id="longer: charged while it runs"),
        pytest.param(64, 20, 50, 136.0, 136.0, id="what the cache held is no work"),
    ],
)
def test_tenant_is_charged_the_work_that_was_done(
    cached: int, expected: int, generated: int, running: float, at_last: float, ended: bool
) -> None:
    shares = TenantShares()
    charges = TenantCharges(shares, [WaitingLine(shares)])
    one = started(charges, cached, expected)
    for token in range(generated):
        one.tokens.append(token)
        charges.progress(one)
    if ended:
        charges.end(one)
    assert shares.of("a") == (at_last if ended else running)


@pytest.mark.parametrize(
    ("generated", "others", "turns"),
    [
        pytest.param(100, 150.0, "ab", id="longer than expected: another one's turn comes"),
        pytest.param(0, 120.0, "ba", id="shorter than expected: its own turn comes back"),
    ],
)
def test_turn_follows_what_the_answer_of_a_tenant_took(
    generated: int, others: float, turns: str
) -> None:
    shares = TenantShares()
    line = WaitingLine(shares)
    charges = TenantCharges(shares, [line])
    one = started(charges, 0, 20)  # charged 140
    charges.charge("b", others)
    for key, tenant in enumerate("ab", start=2):
        line.push(LiveSequence(request(key, 8, tenant=tenant), float(key)))
    found = _turn(line)
    one.tokens += range(generated)
    charges.progress(one)
    if not generated:
        charges.end(one)
    assert found + _turn(line) == turns


def _turn(line: WaitingLine) -> str:
    first = line.first()
    assert first is not None
    return first.request.tenant

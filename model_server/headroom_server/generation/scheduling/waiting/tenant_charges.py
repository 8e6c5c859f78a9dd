"""Charges tenants the work of their requests: first as expected, at last as done. Pure.

Work is counted in tokens, as by a virtual token counter (Sheng et al., OSDI 2024): a token of a
prompt counts once, a generated one `OUTPUT_WEIGHT` times.
"""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.waiting.waiting_line import WaitingLine
from headroom_server.scheduling.tenant_shares import TenantShares

OUTPUT_WEIGHT = 2.0


def work_tokens(prompt_tokens: float, output_tokens: float) -> float:
    """Return the work of a request in tokens."""
    return prompt_tokens + OUTPUT_WEIGHT * output_tokens


class TenantCharges:
    """Charges the accounts in `shares`, and moves tenants in the lines accordingly."""

    __slots__ = ("_lines", "_shares")

    def __init__(self, shares: TenantShares, lines: Sequence[WaitingLine]) -> None:
        self._shares = shares
        self._lines = lines

    def charge(self, tenant: str, work: float) -> None:
        """Charge a request that starts."""
        waiting = {name for one in self._lines for name in one.by_tenant} | {tenant}
        self._shares.serve(tenant, work, len(waiting))
        self._shares.forget(waiting)

    def start(self, sequence: LiveSequence, expected_tokens: float) -> None:
        """Charge the rest of a prompt, and the expected answer."""
        sequence.charged = work_tokens(sequence.remaining, expected_tokens)
        self.charge(sequence.request.tenant, sequence.charged)

    def progress(self, sequence: LiveSequence) -> None:
        """Charge the work of an answer beyond the expectation at its start.

        Otherwise a tenant whose long answers have all seats would count as served least until they
        end, and another one would wait behind it for a seat that it does not give.
        """
        more = _work_done(sequence) - sequence.charged
        if sequence.charged and more > 0.0:
            self._shares.correct(sequence.request.tenant, more)
            sequence.charged += more

    def end(self, sequence: LiveSequence) -> None:
        """Correct the charge of a request that has ended to its actual work."""
        if sequence.charged:
            tenant = sequence.request.tenant
            self._shares.correct(tenant, _work_done(sequence) - sequence.charged)
            for line in self._lines:  # a line finds what has grown
                line.account_changed(tenant)


def _work_done(sequence: LiveSequence) -> float:
    prompt_tokens = len(sequence.request.prompt) - sequence.cached_tokens
    return work_tokens(prompt_tokens, sequence.generated)

"""The condition about the other pool of a pair. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.report.conditions.condition_result import (
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
)
from headroom.scaling.values.partner import PairDecision

_HELD = "no replica is removed meanwhile"


def partner_seen(tick: TickResult) -> Judgement:
    """Return whether the other pool of the pair is seen, and serves the same requests."""
    pair = tick.decision.pair
    if pair is None:
        return TRUE, StatusReason.NO_PARTNER, "the service is not one of two coupled pools"
    partner = pair.partner
    if partner.report is None:
        return _absent(tick, pair)
    if not partner.report.fresh and partner.report.replicas:
        message = f"the metrics of the {partner} are not fresh; {_HELD}"
        return UNKNOWN, StatusReason.PARTNER_NOT_SEEN, message
    if pair.unrelated:
        message = f"{pair.passed_share:.3g} requests arrive here for each one at the {partner}"
        return FALSE, StatusReason.PARTNER_UNRELATED, message
    return TRUE, StatusReason.PARTNER_SEEN, f"coupled with the {partner}"


def _absent(tick: TickResult, pair: PairDecision) -> Judgement:
    partner = pair.partner
    if tick.service.spec.prefill_ref is None or not partner.unsuitable:
        message = f"the {partner} is not seen: {partner.absence}; {_HELD}"
        return UNKNOWN, StatusReason.PARTNER_NOT_SEEN, message
    message = f"spec.prefillRef names {partner.name}, but {partner.absence}; {_HELD}"
    if partner.missing:
        return FALSE, StatusReason.PARTNER_NOT_FOUND, message
    return FALSE, StatusReason.PARTNER_UNSUITABLE, message

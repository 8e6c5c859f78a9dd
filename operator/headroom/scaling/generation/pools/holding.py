"""Reasons for a pool to keep all its replicas for the sake of its partner. Pure.

A pool that is short of replicas, or misses its promise, keeps requests from the other one: what
arrives there is a lower bound. One that is not seen may be as short.
"""

from __future__ import annotations

from headroom.scaling.values.partner import Partner


def reason_to_hold(partner: Partner) -> str:
    """Return why no replica may be removed, as text; empty if some may be.

    With one exception, which would otherwise have no end: where the partner only lacks
    accelerators, and both draw from the same ones, keeping them would keep the partner short.
    """
    report = partner.report
    if report is None:
        return f"the {partner} is not seen ({partner.absence})"
    if not report.replicas:  # scaled to zero: nothing is sent, and nothing passed on
        return ""
    if not report.fresh:
        return f"the metrics of the {partner} are not fresh"
    if report.lacks_accelerators and partner.shares_accelerators:
        return ""
    if report.short:
        return f"the {partner} needs {report.needed} replicas and has {report.ready} ready"
    if report.missed:
        return f"the {partner} misses its promise: {report.missed}"
    return ""

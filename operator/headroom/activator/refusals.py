"""Refusals of an activator: status, reason, message and delay. Pure."""

from __future__ import annotations

import math

from headroom.activator.held_request import Refusal, RefusalReason
from headroom.activator.service_queue import ServiceQueue


def unknown(key: str) -> Refusal:
    """Return the refusal of a request to a service that is not served here."""
    message = f"service {key} is not known to this activator"
    return Refusal(status=503, why=RefusalReason.UNKNOWN, message=message)


def leaving(line: ServiceQueue, now_s: float) -> Refusal:
    """Return the refusal while the process ends."""
    return _again(line, now_s, 503, RefusalReason.LEAVING, "this activator is shutting down")


def too_many(line: ServiceQueue, now_s: float, held: str) -> Refusal:
    """Return the refusal of a request beyond the bound of held requests or bytes."""
    message = f"too many held {held} while no replica is warm"
    return _again(line, now_s, 429, RefusalReason.TOO_MANY, message)


def too_late(line: ServiceQueue, now_s: float, within_s: float) -> Refusal:
    """Return the refusal of a request before whose deadline no replica can be warm."""
    message = f"no replica can be warm before the deadline of {within_s:g} s"
    return _again(line, now_s, 503, RefusalReason.TOO_LATE, message)


def expired(line: ServiceQueue, now_s: float) -> Refusal:
    """Return the refusal of a request whose deadline passed without a warm replica."""
    message = "no replica became warm before the deadline"
    return _again(line, now_s, 503, RefusalReason.EXPIRED, message)


def too_large(line: ServiceQueue) -> Refusal:
    """Return the refusal of a body that is larger than the service allows."""
    message = f"the body must be at most {line.served.max_body_bytes} bytes (routing.maxBodyBytes)"
    return Refusal(status=413, why=RefusalReason.TOO_LARGE, message=message)


def _again(
    line: ServiceQueue, now_s: float, status: int, why: RefusalReason, message: str
) -> Refusal:
    again_s = max(1, math.ceil(line.warm_in_s(now_s)))
    return Refusal(status=status, why=why, message=message, retry_after_s=again_s)

"""Refusals of an activator: status, reason, message and delay. Pure."""

from __future__ import annotations

import math

from headroom.activator.held_request import Refusal, RefusalReason
from headroom.activator.service_queue import ServiceQueue


def unknown(key: str) -> Refusal:
    """No service of this name is served."""
    message = f"service {key} is not known to this activator"
    return Refusal(status=503, why=RefusalReason.UNKNOWN, message=message)


def leaving(line: ServiceQueue, now_s: float) -> Refusal:
    """The process ends."""
    return _again(line, now_s, 503, RefusalReason.LEAVING, "this activator is shutting down")


def too_many(line: ServiceQueue, now_s: float, held: str) -> Refusal:
    """As many requests, or bytes, are held as may be."""
    message = f"too many held {held} while no replica is warm"
    return _again(line, now_s, 429, RefusalReason.TOO_MANY, message)


def too_late(line: ServiceQueue, now_s: float, within_s: float) -> Refusal:
    """No replica can be warm in time."""
    message = f"no replica can be warm before the deadline of {within_s:g} s"
    return _again(line, now_s, 503, RefusalReason.TOO_LATE, message)


def expired(line: ServiceQueue, now_s: float) -> Refusal:
    """No replica became warm in time."""
    message = "no replica became warm before the deadline"
    return _again(line, now_s, 503, RefusalReason.EXPIRED, message)


def too_large(line: ServiceQueue) -> Refusal:
    """The body is larger than the service allows."""
    message = f"the body must be at most {line.served.max_body_bytes} bytes (routing.maxBodyBytes)"
    return Refusal(status=413, why=RefusalReason.TOO_LARGE, message=message)


def _again(
    line: ServiceQueue, now_s: float, status: int, why: RefusalReason, message: str
) -> Refusal:
    again_s = max(1, math.ceil(line.warm_in_s(now_s)))
    return Refusal(status=status, why=why, message=message, retry_after_s=again_s)

"""A buffer of requests and its admissions, for tests."""

from __future__ import annotations

from headroom.activator.held_request import Bounds, HeldRequest
from headroom.activator.request_buffer import RequestBuffer
from headroom.gateway import Endpoint
from headroom.gateway.activator_messages import Served
from support.fakes_activator import KEY, served


def make_buffer(*, bounds: Bounds | None = None, **changes: object) -> RequestBuffer:
    made = RequestBuffer(bounds or Bounds())
    made.serve([of(**changes)])
    return made


def of(*replicas: Endpoint, **changes: object) -> Served:
    return served(20001, *replicas, **changes)


def admitted(buffer: RequestBuffer, now_s: float, timeout_s: float | None = None) -> HeldRequest:
    request = buffer.admit(KEY, now_s, timeout_s)
    assert isinstance(request, HeldRequest)
    buffer.complete(request)
    return request


A, B = Endpoint("10.0.0.1", 8000), Endpoint("10.0.0.2", 8000)

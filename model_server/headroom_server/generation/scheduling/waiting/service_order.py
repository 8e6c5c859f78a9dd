"""The order of service: a request's place, and ranks by class and priority. Pure.

A request's place is a point in time: its arrival, plus a second per level of priority, plus
`OVERTAKING` times the time of its prompt. So a short prompt overtakes the long ones that came
shortly before it, and everything is served eventually: what arrives later has a later place.
"""

from __future__ import annotations

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.values import GenerationRequest

AGEING_S = 1.0
"""Seconds of waiting that are worth one level of priority."""
OVERTAKING = 10.0


def place_s(request: GenerationRequest, prompt_s: float) -> float:
    """Return a request's position in the order of service; its prompt takes `prompt_s`."""
    return request.arrived_s + AGEING_S * request.priority + OVERTAKING * prompt_s


def urgency(sequence: LiveSequence) -> tuple[bool, int]:
    """Return the rank of a request without its age: interactive before batch, then by priority."""
    return sequence.request.batch_class, sequence.request.priority


def order(sequence: LiveSequence) -> tuple[bool, float, int]:
    """Return the rank of service: interactive before batch, then by place."""
    request = sequence.request
    return request.batch_class, sequence.place_s, request.key

"""Settings of Headroom's model server that follow from promises per class."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headroom.api import InferenceService
    from headroom.api.service_spec.traffic import RequestClass

SLO_CLASSES = "HEADROOM_SLO_CLASSES"
TIME_PER_TOKEN = "HEADROOM_TIME_PER_TOKEN_S"  # noqa: S105


def settings(service: InferenceService) -> dict[str, str]:
    """Return the classes, which the server has to know; empty without promises per class.

    Where a class is best effort, the lowest promised time per token bounds what its answers add to
    an iteration: without a bound they would slow down all others.
    """
    promises = service.spec.class_promises
    if not promises:
        return {}
    classes = {one.name: _described(one) for one in service.spec.routing.classes}
    found = {SLO_CLASSES: json.dumps(classes, separators=(",", ":"))}
    paces = [one.targets.output_token for one in promises]
    seconds = [one.seconds for one in paces if one is not None]
    if seconds and any(one.best_effort for one in promises):
        found[TIME_PER_TOKEN] = f"{min(seconds):g}"
    return found


def _described(one: RequestClass) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if one.priority is not None:
        described["priority"] = one.priority
    if one.deadline is not None:
        described["deadline_s"] = one.deadline.seconds
    if one.best_effort:
        described["batch"] = True
    return described

"""The pod that the operator generates, for tests."""

from __future__ import annotations

from typing import Any

from headroom.resources import deployment
from support.service_world import service


def pod(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = deployment.build(service(**changes))["spec"]["template"]["spec"]
    return spec


def server(**changes: Any) -> dict[str, Any]:
    container: dict[str, Any] = pod(**changes)["containers"][0]
    return container


def environment(**changes: Any) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in server(**changes)["env"]}

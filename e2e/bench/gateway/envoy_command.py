"""The command line of the gateway's Envoy as shipped, so that benchmarks run the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

MANIFEST = Path(__file__).parents[3] / "deploy" / "components" / "gateway" / "gateway.yaml"


@cache
def shipped_arguments() -> tuple[str, ...]:
    """Return the arguments of the container `envoy`."""
    pods = [
        one["spec"]["template"]["spec"]
        for one in yaml.safe_load_all(MANIFEST.read_text())
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "headroom-gateway"
    ]
    (envoy,) = (one for pod in pods for one in pod["containers"] if one["name"] == "envoy")
    return tuple(envoy["args"])

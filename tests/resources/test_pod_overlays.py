"""Users' settings over the generated pod: environment, selectors, sidecars; forbidden ones."""

from __future__ import annotations

from typing import Any

from headroom.resources import deployment
from resources.generated_pods import environment, pod, server
from support.service_world import service


def laid_over(**spec: Any) -> dict[str, Any]:
    return {"spec__runtime__podTemplate": {"spec": spec}}


def test_user_environment_follows_the_generated_one() -> None:
    names = list(environment(spec__runtime__env=[{"name": "HEADROOM_ENGINE", "value": "torch"}]))
    assert names[-1] == "HEADROOM_ENGINE"
    assert len(names) == 9


def test_selector_labels_cannot_be_overridden() -> None:
    labels = {"headroom.dev/inference-service": "other", "team": "vision"}
    built = deployment.build(service(spec__runtime__podTemplate={"metadata": {"labels": labels}}))
    selector = built["spec"]["selector"]["matchLabels"]
    found = built["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= found.items()
    assert found["team"] == "vision"


def test_sidecar_is_added_and_server_container_is_merged() -> None:
    changes = laid_over(
        containers=[
            {"name": "sidecar", "image": "x"},
            {"name": "server", "env": [{"name": "EXTRA", "value": "1"}], "livenessProbe": None},
        ]
    )
    first, second = pod(**changes)["containers"]
    assert (first["name"], second) == ("server", {"name": "sidecar", "image": "x"})
    assert "livenessProbe" not in first
    assert first["env"][-1] == {"name": "EXTRA", "value": "1"}
    assert first["image"] == server()["image"]


def test_incompatible_overlay_is_left_to_the_api_server() -> None:
    assert pod(**laid_over(securityContext="none"))["securityContext"] == "none"
    assert pod(**laid_over(nodeSelector=["gpu"]))["nodeSelector"] == ["gpu"]

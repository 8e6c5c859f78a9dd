"""Drift is a difference from the API server's result of the last apply, and nothing else is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from headroom.controller.act.drift import Applied
from headroom.resources import deployment
from support.service_world import service
from support.structural_objects import JSON

MANIFEST = deployment.build(service(spec__runtime__resources={"limits": {"memory": "1024Mi"}}))


def live() -> dict[str, Any]:
    """The manifest as the API server gives it back: with defaults, and quantities its own way."""
    made = copy.deepcopy(MANIFEST)
    made["metadata"] |= {"uid": "u", "resourceVersion": "9", "annotations": {"revision": "1"}}
    made["spec"]["replicas"] = 3
    pod = made["spec"]["template"]["spec"]
    pod |= {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}
    pod["containers"][0]["terminationMessagePath"] = "/dev/termination-log"
    pod["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    return made


def changed_since(found: dict[str, Any]) -> dict[str, Any]:
    """The object at a later resourceVersion, which every write gives it."""
    found["metadata"]["resourceVersion"] = "10"
    return found


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


APPLIED = Applied.of(MANIFEST, live())


def test_defaults_and_normalized_quantities_are_no_drift() -> None:
    assert APPLIED.matches(MANIFEST, live())
    assert APPLIED.matches(MANIFEST, changed_since(live()))


def test_foreign_fields_are_no_drift() -> None:
    found = changed_since(live())
    found["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now"
    found["metadata"]["labels"]["cost-centre"] = "7"
    found["spec"]["replicas"] = 9
    pod_of(found)["tolerations"] = [{"operator": "Exists"}]
    assert APPLIED.matches(MANIFEST, found)


def test_sidecar_injected_at_apply_is_no_drift() -> None:
    injected = live()
    pod_of(injected)["containers"].insert(0, {"name": "istio-proxy", "image": "x"})
    applied = Applied.of(MANIFEST, injected)
    assert applied.matches(MANIFEST, changed_since(copy.deepcopy(injected)))


def _remove_label(found: dict[str, Any]) -> None:
    del found["metadata"]["labels"]["app.kubernetes.io/name"]


def _change_image(found: dict[str, Any]) -> None:
    pod_of(found)["containers"][0]["image"] = "other"


def _remove_container(found: dict[str, Any]) -> None:
    pod_of(found)["containers"] = [{"name": "other"}]


def _change_quantity(found: dict[str, Any]) -> None:
    pod_of(found)["containers"][0]["resources"]["limits"]["memory"] = "2Gi"


def _change_capabilities(found: dict[str, Any]) -> None:
    pod_of(found)["containers"][0]["securityContext"]["capabilities"]["drop"] = []


@pytest.mark.parametrize(
    "change",
    [_remove_label, _change_image, _remove_container, _change_quantity, _change_capabilities],
)
def test_changed_manifest_field_is_drift(change: Any) -> None:
    found = changed_since(live())
    change(found)
    assert not APPLIED.matches(MANIFEST, found)


def test_changed_manifest_is_applied() -> None:
    changed = deployment.build(service(spec__runtime__image="new"))
    assert not APPLIED.matches(changed, live())


def test_checked_object_matches_by_version() -> None:
    found = changed_since(live())
    assert APPLIED.at_version_of(found).resource_version == "10"
    assert APPLIED.at_version_of(found).matches(MANIFEST, found)


@given(JSON, JSON)
def test_any_two_values_can_be_compared(before: Any, after: Any) -> None:
    metadata = {"resourceVersion": "1"}
    applied = Applied.of({"a": before}, {"a": before, "metadata": metadata})
    again = {"a": before, "metadata": {"resourceVersion": "2"}}
    assert applied.matches({"a": before}, again)
    assert applied.matches({"a": before}, again | {"a": after}) in {True, False}

"""Drift is a difference from what the API server made of the last apply, and nothing else is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from headroom.resources import deployment
from headroom.resources.drift import drifted, projection, remember
from service_world import service
from structural_objects import JSON

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


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


SERVER = "spec.template.spec.containers[0]"
APPLIED = remember(MANIFEST, live())


def test_defaults_and_rewritten_quantities_are_no_drift() -> None:
    assert drifted(MANIFEST, live(), APPLIED) == ()


def test_what_others_add_beside_the_manifest_is_no_drift() -> None:
    found = live()
    found["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now"
    found["metadata"]["labels"]["cost-centre"] = "7"
    found["spec"]["replicas"] = 9
    pod_of(found)["containers"].insert(0, {"name": "istio-proxy", "image": "x"})
    assert drifted(MANIFEST, found, APPLIED) == ()


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
    ("change", "path"),
    [
        (_remove_label, "metadata.labels.app.kubernetes.io/name"),
        (_change_image, f"{SERVER}.image"),
        (_remove_container, "spec.template.spec.containers"),
        (_change_quantity, f"{SERVER}.resources.limits.memory"),
        (_change_capabilities, f"{SERVER}.securityContext.capabilities.drop"),
    ],
)
def test_what_the_manifest_sets_and_someone_changed_is_drift(change: Any, path: str) -> None:
    found = live()
    change(found)
    assert drifted(MANIFEST, found, APPLIED) == (path,)


def test_a_child_that_is_not_there_is_drift() -> None:
    assert drifted(MANIFEST, None, APPLIED) == ("it does not exist",)


def test_a_child_of_which_nothing_is_remembered_is_applied_once() -> None:
    assert drifted(MANIFEST, live(), None) == ("it was not applied since the start",)


def test_a_changed_spec_is_applied_whatever_is_live() -> None:
    changed = deployment.build(service(spec__runtime__image="new"))
    assert drifted(changed, live(), APPLIED) == ("the spec changed",)


@given(JSON)
def test_an_object_is_no_drift_of_itself(value: Any) -> None:
    manifest = {"a": value}
    assert projection(manifest, manifest) == manifest
    assert drifted(manifest, manifest, remember(manifest, manifest)) == ()


@given(JSON, JSON)
def test_any_two_values_can_be_compared(manifest: Any, found: Any) -> None:
    applied = remember({"a": manifest}, {"a": manifest})
    assert isinstance(drifted({"a": manifest}, {"a": found}, applied), tuple)

"""The documented kubectl and Helm commands and manifests on a real API server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster, ControlPlane
from scenarios.installation.documented import (
    FOREIGN,
    NOT_RUN,
    ON_A_SERVER,
    ROOT,
    STATIC,
    commands,
    manifests,
)

pytestmark = pytest.mark.clock

KUBECTL = [
    one
    for one in dict.fromkeys(commands())
    if one.begins_with((*STATIC, *ON_A_SERVER, *NOT_RUN)) == "kubectl"
]
HELM = [one for one in dict.fromkeys(commands()) if one.begins_with(ON_A_SERVER) == "helm install"]
PLACES = {"deploy/overlays/NAME": "deploy/overlays/local"}
"""Placeholders of the documentation, and their values here."""
A_DIGEST = "0" * 64
NAMESPACES = ("headroom-system", "llm", "shop", "vision", "team-a", "team-b")
WRITES = {"apply", "create", "run", "patch", "delete", "label", "annotate"}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    """The API server, with the objects that the commands name."""
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        control_plane.apply(body)
    control_plane.kubectl(
        *(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-k",
            ROOT / "deploy" / "overlays" / "local",
        )
    )
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kind-control-plane"}}
    control_plane.apply(node)
    capacity = {"status": {"capacity": {"cpu": "2"}}}  # as a kubelet would say
    control_plane.kubectl(
        *("patch", "node", "kind-control-plane", "--subresource=status", "--type=merge"),
        *("-p", json.dumps(capacity)),
    )
    control_plane.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "demo.yaml")
    return control_plane


@pytest.mark.parametrize("command", KUBECTL, ids=lambda one: f"{one.page}: {one.text[:60]}")
def test_documented_kubectl_commands_work(cluster: Cluster, command: Any) -> None:
    words = [PLACES.get(word, word) for word in command.words[1:]]
    words = [str(ROOT / word) if (ROOT / word).exists() and "/" in word else word for word in words]
    if WRITES & set(words):
        own = words.index("--") if "--" in words else len(words)  # then those of a container
        words.insert(own, "--dry-run=server")
    if words[:2] == ["rollout", "status"]:
        words.append("--watch=false")
    cluster.kubectl(*(word for word in words if word != "--watch"))


@pytest.mark.parametrize("command", HELM, ids=lambda one: f"{one.page}: {one.text[:60]}")
def test_documented_helm_commands_work(
    cluster: Cluster, helm_program: Path, tmp_path: Path, command: Any
) -> None:
    words = [str(ROOT / word) if word == "charts/headroom" else word for word in command.words[1:]]
    words = [word.replace("DIGEST", A_DIGEST) for word in words if word != "--wait"]
    taken = [] if "--take-ownership" in words else ["--take-ownership", "--force-conflicts"]
    done = subprocess.run(
        [helm_program, *words, *taken, "--dry-run=server", "--kubeconfig", cluster.kubeconfig],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _is_foreign(body: dict[str, Any]) -> bool:
    ours = body["apiVersion"].startswith("headroom.dev/")
    return (
        body["kind"] in FOREIGN
        or (not ours and body["kind"] == "InferenceService")
        or body["apiVersion"].startswith("serving.knative.dev/")
    )


@pytest.mark.parametrize(
    ("page", "body"),
    [(page, body) for page, body in manifests() if not _is_foreign(body)],
    ids=lambda part: part if isinstance(part, str) else part["kind"],
)
def test_a_manifest_is_accepted(cluster: Cluster, page: str, body: dict[str, Any]) -> None:
    metadata = {"name": "shown", "namespace": "llm"} | body.get("metadata", {})
    if metadata["namespace"] not in NAMESPACES:
        metadata["namespace"] = "llm"
    cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        stdin=json.dumps(body | {"metadata": metadata}),
    )

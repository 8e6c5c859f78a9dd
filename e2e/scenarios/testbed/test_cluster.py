"""The node runs pods and leaves nothing behind on the host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster, Node, cgroups, wait_until
from cluster.images.builds import BASE_IMAGE
from cluster.layout import Cache, Layout

pytestmark = pytest.mark.clock

OWNER = """
import sys, time
from cluster import {kind}
cluster = {kind}(sys.argv[1])
cluster.start()
print("up", flush=True)
time.sleep(600)
"""


def web_server(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pod that serves its own files, and a Service before it."""
    container = {
        "name": "web",
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "http.server", "8000", "--directory", "/etc"],
        "ports": [{"containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    return pod, service


def test_a_node_is_ready_with_its_gpus(cluster: Cluster) -> None:
    (node, *_) = cluster.get("nodes")["items"]
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    if isinstance(cluster, Node):
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_pod_becomes_ready_and_answers_through_its_service(
    cluster: Cluster, namespace: str
) -> None:
    pod, service = web_server("web")
    for manifest in (pod, service):
        manifest["metadata"]["namespace"] = namespace
    cluster.apply(pod, service)
    cluster.kubectl("wait", "pod/web", "--for=condition=Ready", "-n", namespace, "--timeout=60s")
    with cluster.forward("service/web", 80, namespace) as endpoint:

        def answer() -> bytes:
            try:
                with urllib.request.urlopen(f"{endpoint.url}/hostname", timeout=5) as response:
                    content: bytes = response.read()
                    return content
            except OSError:
                return b""  # kube-proxy learns of the pod a moment after it is ready

        assert b"web" in wait_until(answer, what="the Service answers", timeout_s=20)


@pytest.mark.parametrize("kind", ["ControlPlane", "Node"])
def test_nothing_is_left_when_the_owner_is_killed(
    kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == "Node" and not isinstance(request.getfixturevalue("node"), Node):
        pytest.skip("the cluster that KUBECONFIG names is not ours to kill")
    layout = Layout.named(Cache.of_this_user(), f"killed-{os.getpid()}")
    links = _host_links()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(kind=kind), layout.name],
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        assert len(_processes_of(layout)) >= 5
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not layout.root.exists(), what="the folder is gone", timeout_s=15)
    wait_until(lambda: not _processes_of(layout), what="processes are gone", timeout_s=5)
    assert cgroups.present(layout.cgroup) == []
    assert str(layout.root) not in Path("/proc/self/mountinfo").read_text()
    assert _host_links() == links


def _processes_of(layout: Layout) -> list[str]:
    """Command lines of processes that were started for this cluster."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # ended meanwhile
        if str(layout.root) in command:
            found.append(command)
    return found


def _host_links() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}

"""Configuration of a cluster's programs: command lines, configuration files, kubeconfigs."""

from __future__ import annotations

import base64
import csv
import io
import json
import tomllib
from pathlib import Path

import pytest

from cluster import access, addresses, components, configuration
from cluster.errors import ClusterError
from cluster.layout import Cache, Layout
from cluster.plan import Component, Plan
from cluster.tools.binaries import Kubernetes

LAYOUT = Layout(Path("/cache/clusters/mine"))
PROGRAMS = Kubernetes(Path("/cache/bin"))


def flags(component: Component) -> dict[str, str]:
    """Flags of a command line by name."""
    words = [word for word in component.argv if word.startswith("--")]
    return dict(word.partition("=")[::2] for word in words)


def by_name(found: tuple[Component, ...]) -> dict[str, Component]:
    """Components by their names, which are unique."""
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


@pytest.mark.parametrize(
    "found",
    [components.control_plane(LAYOUT, PROGRAMS, 1234), components.node(LAYOUT, PROGRAMS, 7)],
    ids=["control plane", "node"],
)
def test_rights_are_enforced_in_every_cluster(found: tuple[Component, ...]) -> None:
    assert flags(by_name(found)["kube-apiserver"])["--authorization-mode"] == "Node,RBAC"


def test_a_control_plane_listens_on_loopback_only() -> None:
    api = flags(by_name(components.control_plane(LAYOUT, PROGRAMS, 1234))["kube-apiserver"])
    assert (api["--bind-address"], api["--secure-port"]) == ("127.0.0.1", "1234")


def test_a_control_plane_neither_evicts_nor_collects_what_tests_wrote() -> None:
    controllers = by_name(components.control_plane(LAYOUT, PROGRAMS, 1))["kube-controller-manager"]
    assert flags(controllers)["--controllers"].split(",") == [
        "*",
        "-node-lifecycle-controller",
        "-pod-garbage-collector-controller",
    ]


def test_what_needs_the_api_waits_for_it() -> None:
    found = components.node(LAYOUT, PROGRAMS, 7)
    assert {each.name for each in found if each.needs_api} == {
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
    }


def test_only_the_forwarder_gets_the_listener() -> None:
    found = components.node(LAYOUT, PROGRAMS, 7)
    assert [each.name for each in found if each.takes_listener] == ["forwarder"]


@pytest.mark.parametrize("v1", [True, False])
def test_the_kubelet_accepts_the_old_cgroups_only_where_they_are(v1: bool) -> None:
    rendered = json.loads(configuration.kubelet(LAYOUT, cgroup_v1=v1))
    assert rendered.get("failCgroupV1") is (False if v1 else None)
    assert rendered["cgroupRoot"] == "/headroom-mine"


def test_the_container_runtime_does_not_touch_what_it_may_not() -> None:
    rendered = tomllib.loads(
        configuration.containerd("/images", "/state", "/socket", "/cni", "native")
    )
    plugin = rendered["plugins"]["io.containerd.grpc.v1.cri"]
    assert plugin["restrict_oom_score_adj"] is True
    assert plugin["sandbox_image"] == configuration.PAUSE_IMAGE
    assert plugin["containerd"]["snapshotter"] == "native"
    assert (rendered["root"], rendered["grpc"]["address"]) == ("/images", "/socket")


def test_pods_get_addresses_of_their_own_range() -> None:
    rendered = json.loads(configuration.container_network("/data"))
    assert rendered["plugins"][0]["ipam"]["ranges"] == [[{"subnet": addresses.POD_RANGE}]]


def test_tokens_name_user_and_groups() -> None:
    rows = list(
        csv.reader(io.StringIO(access.token_file({"admin": "a", "node": "n", "proxy": "p"})))
    )
    assert rows == [
        ["a", "admin", "1", "system:masters"],
        ["n", "system:node:local", "2", "system:nodes"],
        ["p", "system:kube-proxy", "3"],
    ]


def test_tokens_are_never_the_same() -> None:
    tokens = [*access.new_tokens().values(), *access.new_tokens().values()]
    assert len(set(tokens)) == len(tokens)


def test_a_kubeconfig_needs_no_other_file() -> None:
    rendered = json.loads(access.kubeconfig("https://127.0.0.1:1", b"PEM", "secret"))
    cluster = rendered["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert rendered["users"][0]["user"] == {"token": "secret"}


def test_another_owner_of_the_same_cluster_keeps_nothing_of_the_first() -> None:
    admin = access.kubeconfig("https://127.0.0.1:1", b"PEM", "secret")
    narrowed = access.with_token(admin, "other", "mine")
    assert "secret" not in narrowed
    rendered = json.loads(narrowed)
    assert rendered["clusters"] == json.loads(admin)["clusters"]
    assert rendered["contexts"][0]["context"]["namespace"] == "mine"


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = Plan(
        api_url="https://127.0.0.1:1",
        components=components.node(LAYOUT, PROGRAMS, 7),
        isolated=True,
        persistent=False,
        listener_fd=7,
        keep_logs_in="/cache/logs/mine",
    )
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan


@pytest.mark.parametrize("name", ["a", "node-1", "x" * 32])
def test_names_that_clusters_may_have(name: str) -> None:
    assert Layout.named(Cache(Path("/cache")), name).name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "../a", "a/b", "x" * 33, "a b"])
def test_names_that_would_not_be_safe_are_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="got"):
        Layout.named(Cache(Path("/cache")), name)

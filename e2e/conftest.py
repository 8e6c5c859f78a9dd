"""Clusters for tests: one control plane and one node per session, a new namespace per test.

A test asks for `cluster`, `kubectl` and `namespace`. `cluster` is the node; a module whose tests
need the API only says so by its own fixture: `def cluster(control_plane): return control_plane`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from chart.helm import Helm
from cluster import (
    Cluster,
    ClusterError,
    ControlPlane,
    ExternalCluster,
    Node,
    NotPossibleError,
    provision,
)
from cluster.images import shipped
from cluster.images.builds import BASE_IMAGE
from cluster.layout import Cache
from cluster.local import LocalCluster
from cluster.progress import OnConsole
from cluster.tools import binaries, prometheus

HERE = Path(__file__).parent
FAILED = pytest.StashKey[bool]()
LONGEST_FIRST = (
    *("test_scaling", "test_life", "test_shortage", "test_gateway", "test_gateway_target"),
    *(
        "test_rollout",
        "test_chart",
        "test_third_party_server",
        "test_generating_server",
        "test_schema",
        "test_target",
    ),
    *("test_leadership", "test_outages"),
    *("test_crashes", "test_prometheus", "test_cluster", "test_doctor"),
)
"""Files of scenarios whose time shows: workers that begin with them end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Time limits cover the tests, not the clusters and images that are made for the first one."""
    rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(180, func_only=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note on the test whether it failed, for fixtures that then keep what explains it."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane without nodes; needs no root."""
    provision.ensure_control_plane(Cache.of_this_user(), OnConsole())
    with ControlPlane() as cluster:
        yield cluster
        _keep_logs_if_failed(cluster, request.session)


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> Iterator[Node | ExternalCluster]:
    """A cluster that runs pods, with the project's images: that of `KUBECONFIG` or a local one."""
    with _node(request.session) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def own_node(request: pytest.FixtureRequest) -> Iterator[Node | ExternalCluster]:
    """The same for one module alone, which installs and removes what others rely on."""
    with _node(request.session) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def helm_program() -> Path:
    """Helm itself."""
    return binaries.helm(_with_chart_tools())


@pytest.fixture(scope="module")
def helm(helm_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster, which renders."""
    return Helm(helm_program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def own_helm(
    helm_program: Path, own_node: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Helm:
    """Helm with the cluster of one module alone."""
    return Helm(helm_program, tmp_path_factory.mktemp("helm"), own_node.kubeconfig)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus' own checker of rules."""
    return prometheus.program(_with_chart_tools(), "promtool")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser, by the name of its program."""
    try:
        provision.ensure_browser(Cache.of_this_user(), OnConsole())
    except NotPossibleError as error:
        pytest.skip(str(error))
    return "chromium"


@contextlib.contextmanager
def _node(session: pytest.Session) -> Iterator[Node | ExternalCluster]:
    if os.environ.get("KUBECONFIG"):
        with ExternalCluster() as external:
            yield external
        return
    cache, progress = Cache.of_this_user(), OnConsole()
    try:
        provision.ensure_node(cache, progress)
    except NotPossibleError as error:
        pytest.skip(str(error))
    built = shipped.build(cache, (*shipped.SMALL, shipped.GATEWAY), progress)
    names = [BASE_IMAGE, *(archive.image for archive in built)]
    with Node(preload=names, progress=progress) as cluster:
        yield cluster
        _keep_logs_if_failed(cluster, session)


def _with_chart_tools() -> Cache:
    cache = Cache.of_this_user()
    try:
        provision.ensure_chart_tools(cache, OnConsole())
    except NotPossibleError as error:
        pytest.skip(str(error))
    return cache


@pytest.fixture(scope="session")
def cluster(node: Cluster) -> Cluster:
    """The cluster that `kubectl` and `namespace` mean."""
    return node


@pytest.fixture
def kubectl(cluster: Cluster) -> Callable[..., str]:
    """`kubectl(*arguments, stdin=None)` as administrator; returns what it printed."""
    return cluster.kubectl


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of this test alone; what it held is shown if the test failed."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words}-{secrets.token_hex(2)}"
    cluster.create_namespace(name)
    yield name
    if request.node.stash.get(FAILED, False):
        print(_contents(cluster, name))  # pytest shows it with the failure
    cluster.delete_namespace(name)


def _contents(cluster: Cluster, namespace: str) -> str:
    """Objects, events and container output of a namespace."""
    scope = ("--namespace", namespace)
    questions = [
        ("get", "deployments,pods,services", "-o", "wide", *scope),
        ("get", "inferenceservices", "-o", "yaml", *scope),
        ("get", "events", "--sort-by=.lastTimestamp", *scope),
    ]
    pods = _said(cluster, "get", "pods", "-o", "name", *scope).split()
    questions += [("logs", pod, "--tail=40", *scope) for pod in pods if pod.startswith("pod/")]
    return "\n".join(f"$ kubectl {' '.join(each)}\n{_said(cluster, *each)}" for each in questions)


def _said(cluster: Cluster, *words: str) -> str:
    try:
        return cluster.kubectl(*words, timeout_s=20)
    except ClusterError as error:
        return str(error)


def _keep_logs_if_failed(cluster: LocalCluster, session: pytest.Session) -> None:
    if session.testsfailed:
        cluster.end(keep_logs=True)
        OnConsole().note(f"Logs of the cluster: {cluster.kept_logs}")

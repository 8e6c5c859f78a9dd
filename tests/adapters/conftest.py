"""A small HTTP server on loopback with responses set by each test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.counted_calls import Calls
from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from support.answering import Answering
from support.loopback import on_loopback


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    answering = Answering()
    async with on_loopback(answering.handle) as answering.url:
        yield answering


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def connection(
    server: Answering, calls: Calls, tmp_path: Path
) -> AsyncIterator[KubernetesConnection]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    environment = {"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    server.gives(text="{}")
    async with KubernetesConnection(calls, deadline_s=0.5, environment=environment) as opened:
        yield opened


@pytest.fixture
def api(connection: KubernetesConnection) -> KubernetesApi:
    return KubernetesApi(connection)

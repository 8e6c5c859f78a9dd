"""The doctor reads the Secrets of gateways where an operator has gateways, and its permissions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headroom.certificates.values import Role
from headroom.cli.commands.doctor.gather import gathered
from headroom.controller.permissions import Permission
from headroom.errors import Forbidden, NotFound
from support.fakes_certificates import SYSTEM, FakeSecrets, identity, new_authority

NOW_S = 1_795_000_000.0


@dataclass
class Answer:
    status: int = 200
    body: bytes = b'{"major": "1", "minor": "34"}'
    date: str = ""


@dataclass
class FakeCluster:
    """An API server with an operator and Secrets."""

    arguments: list[str]
    secrets: FakeSecrets = field(default_factory=FakeSecrets.of_the_manifests)
    denied: str = ""
    may_read_secrets: bool = True

    async def get(
        self, api_version: str, kind: str, namespace: str | None, name: str
    ) -> dict[str, Any]:
        if kind != "Secret":
            raise NotFound(name)
        if not self.may_read_secrets:
            raise Forbidden("secrets is forbidden")
        assert namespace is not None
        return await self.secrets.get(api_version, kind, namespace, name)

    async def list_all(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str = ""
    ) -> list[dict[str, Any]]:
        if kind != "Deployment":
            return []
        container = {"name": "operator", "args": ["run", *self.arguments]}
        pod = {"serviceAccountName": "headroom-operator", "containers": [container]}
        metadata = {"name": "headroom-operator", "namespace": SYSTEM}
        return [{"metadata": metadata, "spec": {"template": {"spec": pod}}}]

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        asked = manifest["spec"]["resourceAttributes"]
        return {"status": {"allowed": not self.denied or asked["resource"] != self.denied}}

    async def fetch(self, path: str) -> Answer:
        return Answer()


@pytest.mark.parametrize(
    "arguments", [["--gateway-namespace", SYSTEM], [f"--gateway-namespace={SYSTEM}"]]
)
async def test_doctor_with_gateways_reads_each_certificate(arguments: list[str]) -> None:
    cluster = FakeCluster(arguments)
    one = identity(new_authority(), Role.GATEWAY)
    cluster.secrets.set(
        Role.GATEWAY.secret, tls_crt=one.certificate, tls_key=one.key, ca_crt=one.trusted
    )
    del cluster.secrets.objects[Role.ACTIVATOR.secret]
    found = (await gathered(cluster, None)).certificates
    assert set(found) == {f"{SYSTEM}/{role.secret}" for role in Role}
    assert found[f"{SYSTEM}/{Role.GATEWAY.secret}"] is not None
    assert found[f"{SYSTEM}/{Role.ACTIVATOR.secret}"] is None


async def test_doctor_without_gateways_reads_no_secret() -> None:
    facts = await gathered(FakeCluster([], may_read_secrets=False), None)
    assert facts.certificates == {}
    assert facts.was_read("Secret")


async def test_doctor_that_may_not_read_secrets_says_so_and_finds_nothing() -> None:
    cluster = FakeCluster(["--gateway-namespace", SYSTEM], may_read_secrets=False)
    facts = await gathered(cluster, None)
    assert facts.certificates == {}
    assert not facts.was_read("Secret")


@pytest.mark.parametrize(
    ("issuer", "lacking"),
    [
        (
            [],
            [(v, n) for n in ("headroom-ca", *(r.secret for r in Role)) for v in ("get", "update")],
        ),
        (["--gateway-certificates=secret"], [("get", "headroom-operator-tls")]),
    ],
)
async def test_doctor_names_missing_permissions_on_the_secrets(
    issuer: list[str], lacking: list[tuple[str, str]]
) -> None:
    cluster = FakeCluster(["--gateway-namespace", SYSTEM, *issuer], denied="secrets")
    denied = (await gathered(cluster, None)).denied
    user = f"system:serviceaccount:{SYSTEM}:headroom-operator"
    assert denied == tuple(
        (user, Permission(verb=verb, group="", resource="secrets", namespace=SYSTEM, name=name))
        for verb, name in lacking
    )


@pytest.mark.parametrize(
    ("arguments", "denied", "lacking"),
    [
        pytest.param([], "tokenreviews", [], id="no gateways"),
        pytest.param(
            ["--gateway-namespace", SYSTEM],
            "tokenreviews",
            ["create tokenreviews.authentication.k8s.io -A"],
            id="gateways",
        ),
        pytest.param(
            ["--gateway-namespace", SYSTEM, "--no-review-gateway-tokens"],
            "tokenreviews",
            [],
            id="certificates alone",
        ),
        pytest.param(
            ["--gateway-namespace", SYSTEM, "--namespace=a", "--namespace=b"],
            "endpointslices",
            [
                f"{verb} endpointslices.discovery.k8s.io -n {namespace}"
                for namespace in "ab"
                for verb in ("get", "list", "create", "patch")
            ],
            id="two namespaces",
        ),
        pytest.param([], "pods", ["list pods -A", "watch pods -A"], id="no marks"),
        pytest.param(
            ["--mark-pods"],
            "pods",
            ["list pods -A", "watch pods -A", "patch pods -A"],
            id="marks",
        ),
    ],
)
async def test_doctor_asks_for_what_the_operator_was_started_with(
    arguments: list[str], denied: str, lacking: list[str]
) -> None:
    found = (await gathered(FakeCluster(arguments, denied=denied), None)).denied
    named = [str(permission) for _, permission in found if "status" not in str(permission)]
    assert [one for one in named if "eviction" not in one] == lacking

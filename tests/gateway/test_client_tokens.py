"""A real Envoy verifies tokens and takes the tenant from them; invalid ones are refused."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from headroom.adapters.gateways.xds_server import messages
from headroom.api.service_spec.client_tokens import MOST_KEYS, MOST_SLOW_KEYS
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.built_routes import Resource
from headroom.gateway.key_sets import BYTES, MARK, NAME
from headroom.gateway.listener.access_counts import ADMIN_PATH, ServiceCounters, read
from headroom.gateway.snapshot import Snapshot
from headroom.gateway.type_urls import Json
from headroom.gateway.values import ClientTokens, RemoteKeys, TenantLimit
from support.fakes_gateway import Gateway, Replica, is_open, ok, service, until, url

pytestmark = pytest.mark.clock

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
ISSUER, AUDIENCE = "https://issuer.example", "inference"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_set(key: ec.EllipticCurvePrivateKey = KEY) -> str:
    numbers = key.public_key().public_numbers()
    x, y = (b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "x": x, "y": y}]})


def token(key: ec.EllipticCurvePrivateKey = KEY, **claims: Any) -> str:
    """Sign a token that is valid for a minute, unless changed; None removes a claim."""
    values = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60} | claims
    kept = {name: value for name, value in values.items() if value is not None}
    parts = [json.dumps({"alg": "ES256", "typ": "JWT"}), json.dumps(kept)]
    signed = ".".join(b64(part.encode()) for part in parts)
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def tokens(**changes: Any) -> ClientTokens:
    values: dict[str, Any] = {
        "issuer": ISSUER,
        "audiences": (AUDIENCE,),
        "tenant_claim": "org.name",
        "keys": key_set(),
    }
    return ClientTokens(**(values | changes))


def of(tenant: str) -> str:
    return token(org={"name": tenant})


async def ask(front: Gateway, one: Route, bearer: str = "", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if bearer:
        named["Authorization"] = f"Bearer {bearer}"
    async with front.client.get(url(one), headers=named) as answered:
        await answered.read()
        return answered.status


@pytest.mark.parametrize("percent", [None, 50])
async def test_rate_counts_by_the_tenant_of_the_token(
    front: Gateway, started: list[Replica], percent: int | None
) -> None:
    started.append(await Replica(ok).start())
    limit = TenantLimit(header="x-tenant", rate_rps=2, burst=2, in_flight_percent=percent)
    one = service(tenants=limit, tokens=tokens(), trusted_cidrs=())
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    loop = asyncio.get_running_loop()
    begun_s, acme = loop.time(), of("acme")
    flood = (ask(front, one, acme, x_tenant=f"tenant-{number}") for number in range(40))
    statuses = Counter(await asyncio.gather(*flood))
    assert 2 <= statuses[200] <= 2 + 2 * (1 + loop.time() - begun_s)
    assert statuses[429] == 40 - statuses[200]
    assert await ask(front, one, of("globex")) == 200, "from the same address"
    seen = {name.lower(): value for name, value in started[0].seen[-1].items()}
    assert seen["x-tenant"] == "globex"
    assert "authorization" not in seen


async def test_token_that_is_not_valid_reaches_no_replica_and_is_no_miss(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service(tokens=tokens())
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    unsigned = ".".join((b64(b'{"alg":"none"}'), of("acme").split(".")[1], ""))
    refused = [
        "",
        "no token",
        unsigned,
        token(OTHER_KEY, org={"name": "acme"}),
        token(iss="https://other.example"),
        token(aud="another service"),
        token(exp=int(time.time()) - 120),
        token(exp=None),
    ]
    for bearer in refused:
        assert await ask(front, one, bearer, x_tenant="acme") in (401, 403), bearer
    assert not started[0].seen
    assert await ask(front, one, of("acme")) == 200

    async def counted() -> bool:
        async with front.client.get(f"http://127.0.0.1:{front.admin_port}{ADMIN_PATH}") as page:
            found = read(await page.text()).get(one.key, ServiceCounters())
        return (found.arrived, found.missed) == (len(refused) + 1, 0)

    await until(counted, "refused requests are no misses")


async def test_token_in_the_path_is_none(front: Gateway, started: list[Replica]) -> None:
    """Logs keep paths, and the replica would get it."""
    started.append(await Replica(ok).start())
    one = service(tokens=tokens())
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    async with front.client.get(url(one, f"/v2/infer?access_token={of('acme')}")) as answered:
        assert answered.status == 401
    assert not started[0].seen


@pytest.mark.parametrize(
    ("trusted", "tenant"), [((), "127.0.0.1"), (("127.0.0.0/8",), "named by the hop")]
)
async def test_optional_token_leaves_the_tenant_to_address_or_trusted_hop(
    front: Gateway, started: list[Replica], trusted: tuple[str, ...], tenant: str
) -> None:
    started.append(await Replica(ok).start())
    limit = TenantLimit(header="x-org", in_flight_percent=50)
    one = service(tokens=tokens(optional=True), tenants=limit, trusted_cidrs=trusted)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    assert await ask(front, one, x_tenant="named by the hop") == 200
    assert started[0].seen[-1]["x-tenant"] == tenant
    assert await ask(front, one, of("acme"), x_tenant="named by the hop") == 200
    assert started[0].seen[-1]["x-tenant"] == "acme"
    assert await ask(front, one, token(OTHER_KEY)) == 401


@pytest.mark.parametrize(
    ("size", "status"), [(BYTES - 200, 200), (BYTES + 200, 401), (1 << 20, 401)]
)
async def test_fetched_key_set_is_bounded(
    front: Gateway, started: list[Replica], size: int, status: int
) -> None:
    """Else 70 services of one tenant, each with 32 MiB, end the gateway of all."""
    marks: list[str | None] = []

    async def serve(request: web.Request) -> web.Response:
        marks.append(request.headers.get(MARK))
        return web.Response(text=key_set() + " " * (size - len(key_set())))

    started += [await Replica(ok).start(), await Replica(serve).start()]
    one = service(tokens=tokens(keys=RemoteKeys(service="issuer", port=8080, path="/keys")))
    await tell_keys_at(front, one, started[0].endpoint, started[1].endpoint)
    assert await ask(front, one, of("acme")) == status
    assert set(marks) == {"true"}, "pages of gateways are not for it"


SLOW = {"kty": "EC", "crv": "P-521", "alg": "ES512", "x": "x" * 88, "y": "y" * 88}
LONG = {"kty": "RSA", "alg": "RS256", "e": "AQAB"}


@pytest.mark.parametrize(
    ("others", "status"),
    [
        pytest.param(MOST_KEYS - 1, 200, id="as many keys as there may be"),
        pytest.param(MOST_KEYS, 401, id="one more"),
        pytest.param([SLOW] * MOST_SLOW_KEYS, 200, id="slow ones"),
        pytest.param([SLOW] * (MOST_SLOW_KEYS + 1), 401, id="too many slow ones"),
        pytest.param([LONG | {"n": "n" * 683}], 200, id="RSA of 4096 bits"),
        pytest.param([LONG | {"n": "n" * 1366}], 401, id="RSA of 8192 bits"),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
async def test_fetched_key_set_is_used_only_if_a_token_costs_little(
    front: Gateway, started: list[Replica], others: int | list[Json], status: int, escaped: bool
) -> None:
    """Else a token that names no key takes a thread of all services for 12 ms."""
    mine = json.loads(key_set())["keys"]
    keys = json.dumps({"keys": mine + (mine * others if isinstance(others, int) else others)})
    if escaped:
        keys = keys.replace("P-521", "\\u0050\\u002D521").replace('"n"', '"\\u006e"')

    async def serve(_: web.Request) -> web.Response:
        return web.Response(text=keys)

    started += [await Replica(ok).start(), await Replica(serve).start()]
    one = service(tokens=tokens(keys=RemoteKeys(service="issuer", port=8080, path="/keys")))
    await tell_keys_at(front, one, started[0].endpoint, started[1].endpoint)
    assert await ask(front, one, of("acme")) == status
    assert started[1].seen[0]["Host"] == "issuer.vision.svc:8080"


async def tell_keys_at(front: Gateway, one: Route, replica: Endpoint, keys: Endpoint) -> None:
    """Publish with the key server at an address: there is no DNS of a cluster here."""
    resources = snapshot([one], {one.key: [replica]}, {}).resources
    name = "issuer.vision.svc:8080"
    named, port = b'"address":"issuer.vision.svc","port_value":8080', keys.port
    body = resources["clusters"][name].body
    assert named in body
    body = body.replace(named, b'"address":"%b","port_value":%d' % (keys.address.encode(), port))
    front.xds.publish(
        Snapshot({**resources, "clusters": {**resources["clusters"], name: Resource("1", body)}})
    )

    async def known() -> bool:
        return one.key in await front.hosts() and await is_open(one.port)

    await until(known, "the gateway routes")


def test_remote_keys_are_read_from_a_service_of_the_namespace_alone() -> None:
    remote = RemoteKeys(service="issuer", port=8080, path="/keys")
    one, other = service(tokens=tokens(keys=remote)), service(namespace="0")
    resources = snapshot([other, one], {}, {}).resources
    cluster = json.loads(resources["clusters"]["issuer.vision.svc:8080"].body)
    address = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]
    assert address["socket_address"] == {"address": "issuer.vision.svc", "port_value": 8080}
    assert min(resources["listeners"]) == min(resources["clusters"]) == NAME, (
        "sent before what needs it"
    )
    listener = resources["listeners"][one.key].body
    assert b'"uri":"http://issuer.vision.svc:8080/keys"' in listener
    assert messages.encode(json.loads(listener))
    assert messages.encode(cluster)

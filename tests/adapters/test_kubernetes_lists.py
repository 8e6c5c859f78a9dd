"""Lists of the API server: pages of one version, bounds, and what is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import (
    MAX_ANSWER_BYTES,
    KubernetesConnection,
)
from headroom.adapters.api_server.page_sizes import LARGEST_PAGE_BYTES
from headroom.errors import (
    AnswerTooLarge,
    Unavailable,
)
from headroom.event_loop_shares import EventLoopShares
from support.answering import Answering

pytestmark = pytest.mark.clock


@pytest.mark.parametrize(
    ("namespace", "path"),
    [("vision", "/api/v1/namespaces/vision/pods"), (None, "/api/v1/pods")],
)
async def test_list_uses_the_selector(
    api: KubernetesApi, server: Answering, namespace: str | None, path: str
) -> None:
    server.gives(text='{"items": [{"metadata": {}}]}')
    assert await api.list_all("v1", "Pod", namespace, "a/b=c") == [{"metadata": {}}]
    asked = (server.asked[0].path, server.asked[0].query)
    assert asked == (path, {"labelSelector": "a/b=c", "limit": "32"})


async def test_null_items_are_an_empty_list(api: KubernetesApi, server: Answering) -> None:
    server.gives(text='{"items": null}')
    assert await api.list_all("v1", "Pod", None) == []


VERSION_7_AND_MORE = {"metadata": {"resourceVersion": "7", "continue": "more"}}


def pages_in_turn(server: Answering, *pages: tuple[int, object]) -> None:
    left = iter(pages)

    async def answer(_: web.Request) -> web.Response:
        status, body = next(left)
        return web.json_response(body, status=status)

    server.answer = answer


async def test_long_list_is_read_in_pages_of_one_version(
    api: KubernetesApi, server: Answering
) -> None:
    pages_in_turn(
        server,
        (200, {**VERSION_7_AND_MORE, "items": [{"metadata": {"managedFields": [{}]}}]}),
        (200, {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}}]}),
    )
    found = await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)
    assert found == ([{"metadata": {}}, {"metadata": {}}], "7")
    assert [one.query.get("continue") for one in server.asked] == [None, "more"]
    assert [one.query["limit"] for one in server.asked] == ["32", "100"]


async def test_list_of_large_objects_is_read_in_smaller_pages(
    api: KubernetesApi, server: Answering
) -> None:
    """Objects of 0.5 MB: 100 of them are refused, 12 as well, and one at a time is read."""

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        count = min(int(request.query["limit"]), 20 - first)
        more = str(first + count) if first + count < 20 else ""
        names = [str(first + at) for at in range(count)]
        items = [{"metadata": {"name": name}, "x": "y" * 500_000} for name in names]
        return web.json_response({"metadata": {"continue": more}, "items": items})

    server.answer = answer
    found = await api.list_all("headroom.dev/v1alpha1", "InferenceService", None)
    assert [one["metadata"]["name"] for one in found] == [str(number) for number in range(20)]
    found, _ = await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)
    assert len(found) == 20


async def test_one_large_object_does_not_leave_the_pages_behind_it_small(
    api: KubernetesApi, server: Answering
) -> None:
    """A foreign object just below the bound made a list of 7000 pods take 7000 requests."""

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        count = min(int(request.query["limit"]), 1000 - first)
        more = str(first + count) if first + count < 1000 else ""
        items = [{"x": "y" * (2_000 if first + at else 4_000_000)} for at in range(count)]
        return web.json_response({"metadata": {"continue": more}, "items": items})

    server.answer = answer
    assert len(await api.list_all("apps/v1", "Deployment", None)) == 1000
    assert len(server.asked) < 20


class Parsed(EventLoopShares):
    """Records what is parsed in whose share."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[str, int]] = []

    async def run(self, owner: str, size: int, work: Callable[[], Any]) -> Any:
        self.pages.append((owner, size))
        return await super().run(owner, size, work)


@pytest.mark.parametrize(
    ("sizes", "pages", "largest"),
    [
        ([4_000] * 400, 8, LARGEST_PAGE_BYTES),
        ([4_000] * 200 + [240_000] * 10 + [4_000] * 200, 30, LARGEST_PAGE_BYTES),
        ([4_000] * 50 + [1_500_000] * 3, 20, 1_600_000),
    ],
    ids=["usual ones", "some with large annotations", "some as large as they can be"],
)
async def test_page_holds_the_event_loop_for_some_milliseconds_within_its_namespace_s_share(
    server: Answering, connection: KubernetesConnection, sizes: list[int], pages: int, largest: int
) -> None:
    """Each megabyte takes 25 to 40 ms to parse, and nothing else runs meanwhile."""

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        found = sizes[first : first + int(request.query["limit"])]
        more = str(first + len(found)) if first + len(found) < len(sizes) else ""
        items = [{"x": "y" * size} for size in found]
        return web.json_response({"metadata": {"continue": more}, "items": items})

    server.answer, shares = answer, Parsed()
    api = KubernetesApi(connection, shares)
    assert len(await api.list_all("apps/v1", "Deployment", "vision")) == len(sizes)
    assert {owner for owner, _ in shares.pages} == {"vision"}
    assert max(size for _, size in shares.pages) <= largest
    assert len(server.asked) <= pages

    shares.pages.clear()
    await api.list_all("apps/v1", "Deployment", None)
    own = [size for _, size in shares.pages if size <= LARGEST_PAGE_BYTES]
    assert not own, "usual pages of all namespaces are the operator's own"


def _named(names: list[str], version: str, more: str) -> str:
    """Write a list of metadata as the API server does: texts first, also in front of the items."""
    items = [{"kind": "P", "apiVersion": "v1", "metadata": _identity(name)} for name in names]
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    listed = {"kind": "PL", "apiVersion": "v1", "metadata": metadata, "items": items}
    return json.dumps(listed, separators=(",", ":"))


def _identity(name: str) -> dict[str, Any]:
    labels = {"labels": {"a": "b" * 5000}}
    return {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, **labels}


async def test_list_leaves_out_an_object_that_is_too_large_and_names_it(
    api: KubernetesApi, server: Answering
) -> None:
    """One tenant's object of 4 MiB made the list of all services fail."""
    sizes = [10, MAX_ANSWER_BYTES, 10, 10, MAX_ANSWER_BYTES]

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        found = range(first, min(len(sizes), first + int(request.query["limit"])))
        more = str(found.stop) if found.stop < len(sizes) else ""
        if "PartialObjectMetadataList" in request.headers["Accept"]:
            text = _named([str(at) for at in found], "7", more)
            return web.Response(text=text, content_type="application/json")
        items = [{"metadata": {"name": str(at)}, "x": "y" * sizes[at]} for at in found]
        metadata = {"resourceVersion": "7", "continue": more}
        return web.json_response({"items": items, "metadata": metadata})

    server.answer = answer
    left_out: list[dict[str, Any]] = []
    kind = ("headroom.dev/v1alpha1", "InferenceService", None)
    found, version = await api.list_at(*kind, left_out=left_out.append)
    assert ([one["metadata"]["name"] for one in found], version) == (["0", "2", "3"], "7")
    names = [{"name": name, "namespace": "shop", "uid": f"uid-{name}"} for name in "14"]
    assert [one["metadata"] for one in left_out] == names
    with pytest.raises(AnswerTooLarge):
        await api.list_at(*kind)


async def test_answer_above_the_bound_is_not_read(api: KubernetesApi, server: Answering) -> None:
    server.gives(text="x" * (MAX_ANSWER_BYTES + 1))
    with pytest.raises(AnswerTooLarge, match="must have at most 4194304 bytes"):
        await api.get("apps/v1", "Deployment", "vision", "resnet")


@pytest.mark.parametrize("levels", [400, 1100])
async def test_list_with_a_deeply_nested_object_is_read(
    api: KubernetesApi, server: Answering, levels: int
) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    server.gives(text='{"metadata": {}, "items": [{"metadata": {}, "spec": ' + deep + "}]}")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + levels)
    try:
        (one,) = await api.list_all("headroom.dev/v1alpha1", "InferenceService", None)
    finally:
        sys.setrecursionlimit(usual)
    assert list(one["spec"]) == ["a"]


async def test_lists_keep_what_is_read(api: KubernetesApi, server: Answering) -> None:
    """See test_kept_parts; and of that what the caller keeps."""
    metadata = {"name": "p", "annotations": {f"a{at}": "x" * 200 for at in range(1200)}}
    pod = {"metadata": metadata, "spec": {"volumes": [{}] * 900, "containers": [{"name": "c"}]}}
    server.gives(text=json.dumps({"items": [pod, pod]}))
    kept = {"metadata": {"name": "p", "annotations": {}}, "spec": {"containers": [{"name": "c"}]}}
    at_version, _ = await api.list_at("v1", "Pod", None)
    assert at_version == await api.list_all("v1", "Pod", None) == [kept, kept]
    assert await api.list_all("v1", "Pod", None, "", lambda _: None) == []
    assert await api.list_at("v1", "Pod", None, "", lambda _: None) == ([], "")


async def test_list_with_late_pages_is_an_error(api: KubernetesApi, server: Answering) -> None:
    """410: the version of the first page was compacted; the kind is still served."""
    pages_in_turn(server, (200, {**VERSION_7_AND_MORE, "items": []}), (410, {}))
    with pytest.raises(Unavailable, match="410"):
        await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)


async def test_list_that_repeats_a_page_ends(api: KubernetesApi, server: Answering) -> None:
    server.gives(text='{"metadata": {"continue": "again"}, "items": []}')
    with pytest.raises(Unavailable, match="the list must go on behind a page"):
        await api.list_all("v1", "Pod", "a")

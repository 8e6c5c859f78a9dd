"""A Kubernetes API in memory: objects with versions, generations, owners; calls that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from headroom.api.timestamps import rfc3339
from headroom.errors import ClusterError, Conflict, NotFound, Rejected

Manifest = dict[str, Any]

START_S = 1_800_000_000.0


def copied(one: Manifest) -> Manifest:
    """Give a copy as the API does: through JSON."""
    copy: Manifest = orjson.loads(orjson.dumps(one))
    return copy


class FakeClock:
    ahead_s = 0.0
    """Offset of the loop's time, which only moves forwards."""

    def now_s(self) -> float:
        return START_S + self.ahead_s + asyncio.get_running_loop().time()

    def elapsed_s(self) -> float:
        return asyncio.get_running_loop().time()


class FakeCluster:
    """Objects with resource versions, generations and owners; calls can be made to fail."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        self.calls: list[tuple[str, str]] = []
        self.scale_writes: list[int] = []
        self.unlisted: set[str] = set()
        self.too_large: set[str] = set()
        """Names of objects that lists leave out."""
        """Names that lists do not have: the server that gives them lags behind."""
        self.on_change: Callable[[str, Manifest], None] = lambda *_: None
        self.before_call: Callable[[str, str], None] = lambda *_: None
        self._failures: list[tuple[str, str, ClusterError]] = []
        self.admitted_replicas = 1_000_000
        """An admission policy stores no more than this."""
        self.applied: dict[tuple[str, str], set[str]] = {}
        """Applied fields by object and field manager."""
        self._version = 100

    def fail(self, verb: str, kind: str, error: ClusterError, times: int = 1) -> None:
        self._failures += [(verb, kind, error)] * times

    def stop_failing(self) -> None:
        self._failures.clear()

    def find(self, kind: str, name: str, namespace: str = "default") -> Manifest | None:
        return self.objects.get((kind, namespace, name))

    def events(self, reason: str = "") -> list[Manifest]:
        return [
            one
            for (kind, _, _), one in self.objects.items()
            if kind == "Event" and reason in ("", one["reason"])
        ]

    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] not in ("get", "get_scale", "list_all")]

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        await self._called("get", kind)
        return copied(self._existing(kind, namespace, name))

    async def get_scale(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        await self._called("get_scale", kind)
        one = self._existing(kind, namespace, name)
        if "scale" not in one:
            raise NotFound(f"{kind} {namespace}/{name} has no /scale")
        return {
            "metadata": {key: one["metadata"][key] for key in ("uid", "resourceVersion")},
            "spec": {"replicas": one["spec"]["replicas"]},
            "status": copied(one["scale"]),
        }

    async def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        await self._called("list_all", kind)
        wanted = _requirements(label_selector)
        listed = (
            kept(copied(one))
            for (kind_, namespace_, name), one in self.objects.items()
            if kind_ == kind
            and name not in self.unlisted
            and namespace in (None, namespace_)
            and all(_has_label(one["metadata"].get("labels", {}), *pair) for pair in wanted.items())
        )
        return [one for one in listed if one is not None]

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
        left_out: Callable[[Manifest], None] | None = None,
    ) -> tuple[list[Manifest], str]:
        def kept_if_read(one: Manifest) -> Manifest | None:
            metadata = one["metadata"]
            if left_out is None or metadata["name"] not in self.too_large:
                return kept(one)
            left_out({"metadata": {key: metadata[key] for key in ("name", "namespace", "uid")}})
            return None

        listed = await self.list_all(api_version, kind, namespace, label_selector, kept_if_read)
        return listed, str(self._version)

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        await self._called("create", manifest["kind"])
        key = _key(manifest)
        if key in self.objects:
            raise Conflict(f"{key} already exists")
        created = self.put(manifest)
        created["metadata"]["managedFields"] = [
            {
                "manager": field_manager,
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}},
            }
        ]
        return copied(created)

    async def replace(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        await self._called("replace", manifest["kind"])
        metadata = manifest["metadata"]
        existing = self._existing(manifest["kind"], metadata["namespace"], metadata["name"])
        _check_version(existing, manifest)
        self.update(existing, lambda one: one.update(spec=copied(manifest["spec"])))
        return copied(existing)

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        await self._called("dry_run" if dry_run else "apply", manifest["kind"])
        existing = self.objects.get(_key(manifest))
        if dry_run:
            return manifest
        if existing is None:
            return copied(self.put(manifest))
        _check_version(existing, manifest)
        uid = existing["metadata"]["uid"]
        if manifest["metadata"].get("uid", uid) != uid:
            raise Conflict("the UID in the precondition is another")
        self.update(existing, lambda one: self._merge_annotations(one, manifest, field_manager))
        self.update(existing, lambda one: _merge(one, manifest))
        return copied(existing)

    def _merge_annotations(self, one: Manifest, manifest: Manifest, manager: str) -> None:
        """Take away what the manager applied before and leaves out now."""
        key = (one["metadata"]["uid"], manager)
        applied = manifest["metadata"].get("annotations") or {}
        for name in self.applied.get(key, set()) - set(applied):
            one["metadata"].get("annotations", {}).pop(name, None)
        self.applied[key] = set(applied)

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        await self._called("apply_status", manifest["kind"])
        metadata = manifest["metadata"]
        existing = self._existing(manifest["kind"], metadata["namespace"], metadata["name"])
        if existing["metadata"]["uid"] != metadata["uid"]:
            raise Conflict("uid mismatch")
        _check_version(existing, manifest)
        if manifest["kind"] == "Pod":
            self.update(existing, lambda one: _merge_conditions(one, manifest["status"]))
        else:
            self.update(existing, lambda one: one.update(status=copied(manifest["status"])))
        return copied(existing)

    async def apply_scale(
        self, deployment: Manifest, replicas: int, *, field_manager: str
    ) -> Manifest:
        await self._called("apply_scale", deployment["kind"])
        metadata = deployment["metadata"]
        existing = self._existing(deployment["kind"], metadata["namespace"], metadata["name"])
        if existing["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.write_replicas(existing, replicas, field_manager, operation="Apply")
        self.scale_writes.append(replicas)
        return copied(existing)

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        await self._called("evict", "Pod")
        existing = self._existing("Pod", namespace, name)
        if existing["metadata"]["uid"] != uid:
            raise Conflict("the UID in the precondition is another")
        existing["metadata"]["deletionTimestamp"] = rfc3339(self._clock.now_s())

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        await self._called("json_patch", manifest["kind"])
        metadata = manifest["metadata"]
        existing = self._existing(manifest["kind"], metadata["namespace"], metadata["name"])
        if existing["metadata"]["resourceVersion"] != operations[1]["value"]:
            raise Conflict("the object has been modified")
        existing["metadata"]["managedFields"] = copied(operations[0]["value"])
        self._touch(existing)
        return copied(existing)

    def write_replicas(
        self, existing: Manifest, replicas: int, manager: str, operation: str = "Update"
    ) -> None:
        """Write replicas through /scale as another client, which then owns them."""
        owned = existing["metadata"].get("managedFields", [])
        for entry in owned:
            entry["fieldsV1"].get("f:spec", {}).pop("f:replicas", None)
        scaled = {"fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"}
        owned = [one for one in owned if one["fieldsV1"].get("f:spec")]
        existing["metadata"]["managedFields"] = [
            *owned,
            {"manager": manager, "operation": operation, **scaled},
        ]
        admitted = min(replicas, self.admitted_replicas)
        self.update(existing, lambda one: one["spec"].update(replicas=admitted))

    def put(self, manifest: Manifest) -> Manifest:
        """Store a new object as the API server would."""
        stored = copied(manifest)
        stored["metadata"] |= {
            "uid": f"uid-{self._version}",
            "generation": 1,
            "creationTimestamp": rfc3339(self._clock.now_s()),
        }
        self.objects[_key(manifest)] = stored
        self._touch(stored)
        self.on_change("ADDED", stored)
        return stored

    def update(self, existing: Manifest, change: Callable[[Manifest], Any]) -> None:
        before = copied(existing)
        change(existing)
        if existing == before:
            return
        if existing.get("spec") != before.get("spec"):
            existing["metadata"]["generation"] += 1
        self._touch(existing)
        self.on_change("MODIFIED", existing)

    def delete(
        self, kind: str, name: str, namespace: str = "default", *, orphan: bool = False
    ) -> None:
        """Delete an object, and what it controls, as garbage collection would."""
        gone = self.objects.pop((kind, namespace, name))
        uid = gone["metadata"]["uid"]
        for key, one in list(self.objects.items()):
            if orphan:
                self.update(one, lambda child: _orphan(child, uid))
            owners = one["metadata"].get("ownerReferences") or ()
            if key in self.objects and any(owner["uid"] == uid for owner in owners):
                self.delete(key[0], key[2], key[1])
        self.on_change("DELETED", gone)

    def backup(self, kind: str) -> Callable[[], None]:
        """Return what restores the objects of a kind as they are now, and the versions."""
        kept = {key: copied(one) for key, one in self.objects.items() if key[0] == kind}
        version = self._version

        def restore() -> None:
            self.objects = {key: one for key, one in self.objects.items() if key[0] != kind} | kept
            self._version = version

        return restore

    def _existing(self, kind: str, namespace: str, name: str) -> Manifest:
        try:
            return self.objects[kind, namespace, name]
        except KeyError:
            raise NotFound(f"{kind} {namespace}/{name} not found") from None

    def _touch(self, stored: Manifest) -> None:
        self._version += 1
        stored["metadata"]["resourceVersion"] = str(self._version)

    async def _called(self, verb: str, kind: str) -> None:
        await asyncio.sleep(0.002)
        self.calls.append((verb, kind))
        self.before_call(verb, kind)
        for failure in self._failures:
            if failure[0] == verb and failure[1] == kind:
                self._failures.remove(failure)
                raise failure[2]


def _orphan(child: Manifest, uid: str) -> None:
    owners = child["metadata"].get("ownerReferences")
    if owners and any(owner["uid"] == uid for owner in owners):
        child["metadata"]["ownerReferences"] = [one for one in owners if one["uid"] != uid]


def rejected(message: str) -> Rejected:
    return Rejected(message)


def _requirements(selector: str) -> dict[str, list[str]]:
    """Give the values that are taken by key, none for any, of `a=b,c` or `a in (b,c)`."""
    key, _, values = selector.partition(" in ")
    if values:
        return {key: values.strip("()").split(",")}
    pairs = [pair.partition("=") for pair in selector.split(",") if pair]
    return {key: [value] if value else [] for key, _, value in pairs}


def _has_label(labels: Mapping[str, str], key: str, values: list[str]) -> bool:
    return key in labels and (not values or labels[key] in values)


def _check_version(existing: Manifest, manifest: Manifest) -> None:
    expected = manifest["metadata"].get("resourceVersion")
    if expected not in (None, existing["metadata"]["resourceVersion"]):
        raise Conflict("the object has been modified")


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata["namespace"], metadata["name"]


def _merge(one: Manifest, other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if key != "selector" and isinstance(value, Mapping) and isinstance(one.get(key), dict):
            _merge(one[key], value)  # a selector is atomic
        else:
            one[key] = copied(value)


def _merge_conditions(pod: Manifest, applied: Mapping[str, Any]) -> None:
    """Conditions are a map by type: those of others stay."""
    kinds = {one["type"] for one in applied["conditions"]}
    others = [one for one in pod["status"].get("conditions", ()) if one["type"] not in kinds]
    pod["status"]["conditions"] = [*others, *copied(applied["conditions"])]

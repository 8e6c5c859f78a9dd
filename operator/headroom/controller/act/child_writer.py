"""Writes the child objects of one service: created if missing, applied if they drifted."""

from __future__ import annotations

from headroom.api import InferenceService
from headroom.controller.act.adoption import check_owner, recheck
from headroom.controller.act.drift import Applied, projected
from headroom.controller.act.field_ownership import handover, is_controlled_by
from headroom.controller.act.same_spec import write_again
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import ClusterError, NamespaceTerminating, NotFound, NotLeading
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER

READ_EVERY_S = 60.0


class ChildWriter:
    """Remembers how the API server showed each object after the last write."""

    def __init__(self) -> None:
        self._applied: dict[str, Applied] = {}
        self._read_s: dict[str, float] = {}

    async def keep(
        self, cluster: Cluster, service: InferenceService, manifest: Manifest, now_s: float
    ) -> None:
        """Write the object like `write`, but read it at most every READ_EVERY_S while unchanged."""
        name = _name(manifest)
        applied, read_s = self._applied.get(name), self._read_s.get(name)
        same = applied is not None and applied.manifest == manifest
        if same and read_s is not None and 0.0 <= now_s - read_s < READ_EVERY_S:
            return
        await self.write(cluster, service, manifest)
        self._read_s[name] = now_s

    async def write(
        self,
        cluster: Cluster,
        service: InferenceService,
        manifest: Manifest,
        *,
        is_new: bool = False,
    ) -> None:
        """Make the object match the manifest; of a new service it is created without a look before.

        Raises ClusterError, and ForeignObject if another owner has an object of that name.
        """
        refused: ClusterError | None = None
        if is_new and _name(manifest) not in self._applied:
            try:
                await self.create(cluster, manifest, manifest)
                return
            except (NamespaceTerminating, NotLeading):
                raise
            except ClusterError as error:  # it may exist, also where a quota or a webhook answers
                refused = error
        live = await _read(cluster, manifest)
        if live is None:
            if refused is not None:
                raise refused
            await self.create(cluster, manifest, manifest)
        else:
            await self.apply(cluster, service, manifest, live)

    async def create(self, cluster: Cluster, manifest: Manifest, applied: Manifest) -> Manifest:
        """POST, which fails if the object exists; fields are handed over when it is read again.

        `applied` is the manifest of later applies, without replicas.
        """
        live = await cluster.create(manifest, field_manager=SCALER_FIELD_MANAGER)
        self._applied[_name(manifest)] = Applied.of(applied, live)
        return live

    def is_undone(self, manifest: Manifest, live: Manifest) -> bool:
        """Return whether another client changed fields that were applied from this manifest."""
        applied = self._applied.get(_name(manifest))
        return (
            applied is not None
            and applied.manifest == manifest
            and not applied.matches(manifest, live)
        )

    def changes_template(self, manifest: Manifest, live: Manifest) -> bool:
        """Return whether an apply would change the pod template, as far as the manifest shows."""
        desired, applied = manifest["spec"]["template"], self._applied.get(_name(manifest))
        if applied is not None:
            return bool(applied.manifest["spec"]["template"] != desired)
        return bool(projected(live["spec"].get("template"), desired) != desired)

    async def apply(
        self, cluster: Cluster, service: InferenceService, manifest: Manifest, live: Manifest
    ) -> Manifest:
        """Apply if it drifted, to the object as it was read: an earlier leader's write is refused.

        An orphan is adopted, and what was created is handed over: only now, since controllers
        write at once to what is new, and many creations at a time wait for each request. Return the
        object as it is then.
        """
        check_owner(live, service)
        if not is_controlled_by(live, service.uid):
            await recheck(cluster, service)

        async def apply_to(read: Manifest) -> Manifest:
            return await self._apply_to(cluster, manifest, read)

        return await write_again(cluster, manifest, live, apply_to)

    async def _apply_to(self, cluster: Cluster, manifest: Manifest, live: Manifest) -> Manifest:
        operations = handover(live)
        if operations:
            live = await cluster.json_patch(live, operations, field_manager=FIELD_MANAGER)
        name = _name(manifest)
        applied = self._applied.get(name)
        if applied is not None and applied.matches(manifest, live):
            self._applied[name] = applied.at_version_of(live)
            return live
        read = {"resourceVersion": live["metadata"]["resourceVersion"]}
        at_version = manifest | {"metadata": manifest["metadata"] | read}
        answer = await cluster.apply(at_version, field_manager=FIELD_MANAGER)
        self._applied[name] = Applied.of(manifest, answer)
        return answer


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


async def _read(cluster: Cluster, manifest: Manifest) -> Manifest | None:
    metadata = manifest["metadata"]
    try:
        return await cluster.get(
            manifest["apiVersion"], manifest["kind"], metadata["namespace"], metadata["name"]
        )
    except NotFound:
        return None

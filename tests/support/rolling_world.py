"""A world whose Deployments roll out: ReplicaSets, revisions, surges and images that do not exist.

The algorithm is that of the Deployment controller (Kubernetes 1.36, `rolling.go`), for whole
numbers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from zlib import crc32

from headroom.api.timestamps import rfc3339
from support.cluster_world import Manifest, copied
from support.controller_world import World, play
from support.pods_world import Pods, is_ready

REVISION = "deployment.kubernetes.io/revision"


class RollingPods(Pods):
    """Pods that have a ReplicaSet for each template of their Deployment."""

    bad_images: frozenset[str] = frozenset()
    """They cannot be pulled."""
    quota: int | None = None
    """Pods that the namespace may have, leaving ones included."""
    needs = "Insufficient nvidia.com/gpu"
    """Resource that a pod without a place lacks."""

    def _follow(self, deployment: Manifest, namespace: str, name: str) -> None:
        newest = self._newest(deployment, namespace, name)
        spec, active = deployment["spec"], self._active(name)
        replicas = spec["replicas"]
        rolling = spec["strategy"]["rollingUpdate"]
        surge, unavailable = int(rolling["maxSurge"]), int(rolling["maxUnavailable"])
        new = [one for one in active if _set_of(one) == newest["metadata"]["uid"]]
        old = [one for one in active if one not in new]
        most = replicas + surge if old else replicas
        refused = False
        for _ in range(min(most - len(active), replicas - len(new))):
            refused = self.quota is not None and len(self.of(name)) >= self.quota
            if refused:
                break
            self._start_in(newest, deployment, namespace, name)
        for extra in sorted(new, key=is_ready, reverse=True)[replicas:]:
            self._leave(extra)
        least = replicas - unavailable
        room = len(active) - least - sum(not is_ready(one) for one in new)
        for one in [one for one in old if not is_ready(one)][: max(0, room)]:
            self._leave(one)
            room -= 1
        spare = min(room, sum(map(is_ready, active)) - least)
        for one in [one for one in old if is_ready(one)][: max(0, spare)]:
            self._leave(one)
        self._report(deployment, newest, name, refused=refused)

    def _newest(self, deployment: Manifest, namespace: str, name: str) -> Manifest:
        """Return the ReplicaSet of the template; it has the highest revision."""
        template = deployment["spec"]["template"]
        digest = f"{crc32(json.dumps(template, sort_keys=True).encode()):08x}"
        key = ("ReplicaSet", namespace, f"{name}-{digest}")
        uid = deployment["metadata"]["uid"]
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}
        if key not in self._cluster.objects:
            self._cluster.put(
                {
                    "kind": "ReplicaSet",
                    "metadata": {
                        "name": key[2],
                        "namespace": namespace,
                        "annotations": {REVISION: "0"},
                        "ownerReferences": [owner | {"controller": True}],
                    },
                    "spec": {"template": copied(template)},
                }
            )
        newest = self._cluster.objects[key]
        sets = [one for (kind, *_), one in self._cluster.objects.items() if kind == "ReplicaSet"]
        highest = max(
            int(one["metadata"]["annotations"][REVISION])
            for one in sets
            if one["metadata"]["ownerReferences"][0]["uid"] == uid
        )
        if newest["metadata"]["annotations"][REVISION] in ("0", "") or (
            int(newest["metadata"]["annotations"][REVISION]) < highest
        ):
            newest["metadata"]["annotations"][REVISION] = str(highest + 1)
        revision = newest["metadata"]["annotations"][REVISION]
        deployment["metadata"].setdefault("annotations", {})[REVISION] = revision
        return newest

    def _start_in(self, owner: Manifest, deployment: Manifest, namespace: str, name: str) -> None:
        self._start(deployment, namespace, name)
        pod = self.of(name)[-1]
        metadata = owner["metadata"]
        pod["metadata"]["ownerReferences"][0] |= {"name": metadata["name"], "uid": metadata["uid"]}

    def _leave(self, pod: Manifest) -> None:
        pod["metadata"]["deletionTimestamp"] = rfc3339(self._clock.now_s())

    def _active(self, name: str) -> list[Manifest]:
        return [one for one in self.of(name) if "deletionTimestamp" not in one["metadata"]]

    def _report(self, deployment: Manifest, newest: Manifest, name: str, *, refused: bool) -> None:
        active, now = self._active(name), rfc3339(self._clock.now_s())
        updated = [one for one in active if _set_of(one) == newest["metadata"]["uid"]]
        counts = {
            "replicas": len(active),
            "updatedReplicas": len(updated),
            "readyReplicas": sum(map(is_ready, active)),
        }
        before = deployment.get("status") or {}
        conditions = [one for one in before.get("conditions", ()) if one["type"] == "Progressing"]
        if any(before.get(key) != value for key, value in counts.items()) or not conditions:
            conditions = [{"type": "Progressing", "status": "True", "lastUpdateTime": now}]
        failures = [one for one in before.get("conditions", ()) if one["type"] == "ReplicaFailure"]
        if refused:
            gpu = "requests.nvidia.com/gpu"
            message = f"exceeded quota: gpus, requested: {gpu}=1, used: {gpu}=1, limited: {gpu}=1"
            failure = {"type": "ReplicaFailure", "status": "True", "message": message}
            conditions += failures or [failure | {"lastTransitionTime": now}]
        generation = deployment["metadata"]["generation"]
        status = counts | {"observedGeneration": generation, "conditions": conditions}
        deployment["status"] = status

    def _say(
        self, pod: Manifest, placed_s: float | None, began_s: float | None, started: bool
    ) -> None:
        image = pod["spec"]["containers"][0].get("image")
        bad = image in self.bad_images
        super()._say(pod, placed_s, began_s, started and not bad)
        conditions = pod["status"]["conditions"]
        for one in conditions:
            if one.get("reason") == "Unschedulable":
                one["message"] = f"0/1 nodes are available: 1 {self.needs}."
        if bad and placed_s is not None:
            waiting = {"reason": "ErrImagePull", "message": f"{image}: not found"}
            pod["status"]["containerStatuses"] = [
                {"name": "server", "restartCount": 0, "state": {"waiting": waiting}}
            ]


class RollingWorld(World):
    """The controller, with Deployments that roll out."""

    pods: RollingPods
    make_pods = RollingPods

    def image(self, name: str, of: str = "resnet", **changes: object) -> None:
        """Edit the image as a user would."""
        self.edit(of, runtime={"image": name}, **changes)


def play_rollouts(scenario: Callable[[RollingWorld], Awaitable[None]]) -> None:
    """Run a scenario in a world whose Deployments roll out."""

    async def in_rolling_world(world: World) -> None:
        assert isinstance(world, RollingWorld)
        await scenario(world)

    play(in_rolling_world, kind=RollingWorld)


def _set_of(pod: Manifest) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["uid"])

"""Chooses the InferenceService that may scale a workload that several name. No I/O.

The one that creates the workload has precedence, then the oldest; one in Recommend mode claims
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class _Claim:
    """One service's claim; the smallest wins."""

    recommends: bool
    names_it: bool
    """Whether it is not the creator of the workload."""
    created: str
    """RFC 3339 in UTC, which sorts as time does."""
    uid: str
    name: str


class TargetOwners:
    """Targets of each InferenceService, by UID."""

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, _Claim]] = {}
        self._key_of: dict[str, _Key] = {}

    def saw(self, service: Mapping[str, Any]) -> None:
        """Process an InferenceService as it is stored."""
        key, claim = _claimed(service)
        if self._key_of.get(claim.uid, key) != key:
            self.forget(claim.uid)
        self._key_of[claim.uid] = key
        self._by_key.setdefault(key, {})[claim.uid] = claim

    def forget(self, uid: str) -> None:
        """Drop an InferenceService that is gone."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        del self._by_key[key][uid]
        if not self._by_key[key]:
            del self._by_key[key]

    def other_owner(self, uid: str) -> str:
        """Name the InferenceService that has priority over this one; empty where none has."""
        key = self._key_of.get(uid)
        if key is None:
            return ""
        claims = self._by_key[key]
        first = min(claims.values())
        return "" if first.uid == uid or claims[uid].recommends else first.name


def _claimed(service: Mapping[str, Any]) -> tuple[_Key, _Claim]:
    metadata = service["metadata"]
    spec = service.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    target, scaling = spec.get("targetRef"), spec.get("scaling")
    claim = _Claim(
        recommends=isinstance(scaling, Mapping) and scaling.get("mode") == "Recommend",
        names_it=isinstance(target, Mapping),
        created=str(metadata.get("creationTimestamp", "")),
        uid=str(metadata["uid"]),
        name=str(metadata.get("name", "")),
    )
    if not isinstance(target, Mapping):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": metadata.get("name")}
    group, slash, _ = str(target.get("apiVersion")).partition("/")
    key = (
        str(metadata.get("namespace", "")),
        group if slash else "",
        str(target.get("kind")),
        str(target.get("name")),
    )
    return key, claim

"""Detect whether a live object still has the fields that the operator applied. Pure.

The API server normalizes values ("1000m" becomes "1") and adds defaults, so a manifest cannot be
compared with the live object directly. Instead the same fields of the same object are compared at
two times: in the API server's answer to our apply, and now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from headroom.controller.gather.workloads.pruned import pruned

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A manifest, and how the API server showed its fields when it was applied."""

    manifest: _Object
    resource_version: str
    fields: bytes
    """A digest of them: whole they would be 18 kB for each service."""

    @classmethod
    def of(cls, manifest: _Object, answer: _Object) -> Applied:
        """Remember the answer to an apply of the manifest."""
        return cls(
            manifest=manifest,
            resource_version=answer["metadata"]["resourceVersion"],
            fields=_digest(projected(pruned(dict(answer)), manifest)),
        )

    def matches(self, manifest: _Object, live: _Object) -> bool:
        """Return whether the manifest is the same, and the live object still shows its fields."""
        if manifest is not self.manifest and manifest != self.manifest:
            return False
        if live["metadata"]["resourceVersion"] == self.resource_version:
            return True
        return _digest(projected(pruned(dict(live)), manifest)) == self.fields

    def at_version_of(self, live: _Object) -> Applied:
        """Return it for this version, so that next time comparing versions is enough."""
        return replace(self, resource_version=live["metadata"]["resourceVersion"])


def _digest(fields: Any) -> bytes:
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=16).digest()


def projected(live: Any, manifest: Any) -> Any:
    """Return the parts of a live object that a manifest has.

    A list of another length is taken as a whole.
    """
    if isinstance(manifest, Mapping) and isinstance(live, Mapping):
        return {key: projected(live.get(key), value) for key, value in manifest.items()}
    if isinstance(manifest, list) and isinstance(live, list) and len(live) == len(manifest):
        return [projected(one, value) for one, value in zip(live, manifest, strict=True)]
    return live

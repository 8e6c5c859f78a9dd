"""Tells whether a child still is what was last applied.

Comparing a manifest with the live object does not work: the API server adds defaults and rewrites
quantities ("1000m" becomes "1"). So what the live object held at the manifest's own paths is
remembered right after an apply, and drift is a difference from that memory. What others add beside
the manifest (a sidecar, an annotation) is not drift.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.resources.overlay import merge_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was applied, and what the API server made of it."""

    manifest_digest: str
    projected: Any


def remember(manifest: Mapping[str, Any], live: Mapping[str, Any]) -> Applied:
    """Remember an apply from its manifest and the object that the API server answered with."""
    return Applied(manifest_digest=digest(manifest), projected=projection(manifest, live))


def drifted(
    manifest: Mapping[str, Any], live: Mapping[str, Any] | None, applied: Applied | None
) -> tuple[str, ...]:
    """Give what makes an apply necessary, as paths or a cause in words; empty if nothing does."""
    if live is None:
        return ("it does not exist",)
    if applied is None:
        return ("it was not applied since the start",)
    if applied.manifest_digest != digest(manifest):
        return ("the spec changed",)
    return tuple(_differences(applied.projected, projection(manifest, live), ""))


def projection(manifest: Any, live: Any, field: str = "") -> Any:
    """Cut the live value down to the paths that the manifest sets; what is missing is left out.

    Lists whose entries carry a merge key are matched by it, in the manifest's order; other lists
    are one value.
    """
    if isinstance(manifest, Mapping) and isinstance(live, Mapping):
        return {k: projection(v, live[k], k) for k, v in manifest.items() if k in live}
    key = merge_key(field, manifest)
    if key and merge_key(field, live):
        by_key = {entry[key]: entry for entry in live}
        return [projection(entry, by_key[entry[key]]) for entry in manifest if entry[key] in by_key]
    return live


def digest(manifest: Mapping[str, Any]) -> str:
    """Digest a manifest, whatever the order of its keys."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(k for k in after if k not in before)]:
            inner = f"{path}.{key}" if path else key
            if key not in before or key not in after:
                yield inner
            else:
                yield from _differences(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{index}]")
    elif before != after:
        yield path

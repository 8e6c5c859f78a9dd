"""The model's location: HEADROOM_MODEL_URI as a directory of this container. Pure.

""                   no files
file:///path         this path
pvc://claim/path     /models/path, where the operator mounts the claim
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

PVC_MOUNT = PurePosixPath("/models")


def directory(uri: str) -> PurePosixPath | None:
    """Return the directory of a URI; None for the empty one.

    Raises:
        ValueError: another scheme, a host in a file URI, or a path with `..`.
    """
    if not uri:
        return None
    parts = urlsplit(uri)
    path = PurePosixPath(unquote(parts.path) or "/")
    if ".." in path.parts:
        raise ValueError(f"a model URI must not contain '..'; got {uri}")
    if parts.scheme == "file" and not parts.netloc and path.is_absolute():
        return path
    if parts.scheme == "pvc" and parts.netloc:
        return PVC_MOUNT / path.relative_to("/")
    raise ValueError(f"a model URI must be file:///path or pvc://claim/path; got {uri}")

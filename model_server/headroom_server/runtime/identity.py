"""What tells one model's weights from another's, for a store that outlives this process.

The description holds the architecture and its parameters, and a digest where one is pinned. Else
the files beside it stand for their content by name, size and time of change: replicas that read
one volume or one image agree on these. The code of a class is not looked at.
"""

from __future__ import annotations

from headroom_server.runtime.store import Source
from headroom_server.settings import Settings


def identity_of(settings: Settings, source: Source) -> str:
    """Of one version of a model. Reads the folder, not the files."""
    description = source.description
    said: list[object] = [source.name, source.number, settings.engine, settings.model_class]
    said.append(description)
    pinned = description is not None and description.sha256 is not None
    if source.directory is not None and not pinned:
        for path in sorted(source.directory.iterdir()):
            status = path.stat()
            said.append((path.name, status.st_size, status.st_mtime_ns))
    return repr(said)

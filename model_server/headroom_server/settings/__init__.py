"""The server's settings: every key with its limits and default. Durations are in seconds. Pure.

A module has one group of keys; `fields` has the types that they share.
"""

from __future__ import annotations

from headroom_server.settings.batches import QueueSettings
from headroom_server.settings.caches import CacheSettings
from headroom_server.settings.emulation import EmulationSettings
from headroom_server.settings.engines import EngineSettings
from headroom_server.settings.fields import Group
from headroom_server.settings.generation import GenerationSettings
from headroom_server.settings.lifecycle import LifecycleSettings
from headroom_server.settings.listeners import ListenerSettings
from headroom_server.settings.models import ModelSettings


class Settings(
    ModelSettings,
    ListenerSettings,
    EngineSettings,
    EmulationSettings,
    QueueSettings,
    GenerationSettings,
    CacheSettings,
    LifecycleSettings,
):
    """Every key with its limits and default."""


GROUPS = tuple(base for base in Settings.__bases__ if issubclass(base, Group))
"""The groups of keys, in the order of the reference page."""


def title(group: type[Group]) -> str:
    """Return the heading of a group."""
    return (group.__doc__ or "").removesuffix(".")

"""The progress of a pod's model download, from the status of its init container. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api.timestamps import epoch_s
from headroom.resources.names import DOWNLOADER


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDownload:
    """The download of one pod."""

    since_s: float | None = None
    """Time when the last attempt began; None where none has, as while its image is pulled."""
    until_s: float | None = None
    """Time when it ended; None while it has not."""
    failed: bool = False
    """An attempt has failed, and none has succeeded since."""

    @property
    def running(self) -> bool:
        """Whether it goes on now."""
        return self.since_s is not None and self.until_s is None


def download_of(pod: Mapping[str, Any]) -> ModelDownload | None:
    """Return its progress; None where the pod has nothing to fetch, or no node yet."""
    statuses = pod.get("status", {}).get("initContainerStatuses") or ()
    one = next((each for each in statuses if each["name"] == DOWNLOADER), None)
    if one is None:
        return None
    state = one.get("state") or {}
    ended = state.get("terminated") or {}
    if ended and ended.get("exitCode") == 0:
        return ModelDownload(
            since_s=_moment(ended, "startedAt"), until_s=_moment(ended, "finishedAt")
        )
    before = (one.get("lastState") or {}).get("terminated") or {}
    return ModelDownload(
        since_s=_moment(state.get("running") or {}, "startedAt"),
        failed=bool(ended or before or (state.get("waiting") or {}).get("message")),
    )


def _moment(state: Mapping[str, Any], key: str) -> float | None:
    return epoch_s(state[key]) if state.get(key) else None

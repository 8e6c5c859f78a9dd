"""What the operator's own settings say of the pods that it makes."""

from __future__ import annotations

from dataclasses import dataclass

DOWNLOADER_IMAGE = "headroom-downloader:0.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The same for all services."""

    downloader_image: str = DOWNLOADER_IMAGE
    """Fetches what hf:// and s3:// name, as `IMAGE URI FOLDER [--digest DIGEST]`."""


DEFAULTS = Settings()

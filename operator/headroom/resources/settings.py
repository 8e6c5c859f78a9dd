"""Operator settings that affect the created pods."""

from __future__ import annotations

from dataclasses import dataclass

DOWNLOADER_IMAGE = "headroom-downloader:0.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that are the same for all services."""

    downloader_image: str = DOWNLOADER_IMAGE
    """Downloads hf:// and s3:// models: `IMAGE URI FOLDER [--digest DIGEST]`."""


DEFAULTS = Settings()

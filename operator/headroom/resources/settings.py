"""Operator settings that affect pods."""

from __future__ import annotations

from dataclasses import dataclass

DOWNLOADER_IMAGE = "headroom-downloader:0.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that are the same for all services."""

    downloader_image: str = DOWNLOADER_IMAGE
    """Downloads hf:// and s3:// models: `IMAGE URI FOLDER [--digest DIGEST]`."""
    has_gateways: bool = True
    """Whether there are gateways for services in Gateway mode; otherwise their Services lead to the
    replicas."""
    marks_pods: bool = False
    """Whether pods are marked that a scale-down is to remove first, which takes `patch` on pods."""


DEFAULTS = Settings()

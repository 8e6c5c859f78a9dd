"""Warm-up of new pods by the operator's requests, then their readiness gate."""

from headroom.controller.warmup.ports import PodWatch, Requester, WarmupDeps
from headroom.controller.warmup.warmer import Warmer

__all__ = ["PodWatch", "Requester", "Warmer", "WarmupDeps"]

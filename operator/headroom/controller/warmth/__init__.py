"""Warmth for servers that cannot warm themselves: requests to new pods, then their gate."""

from headroom.controller.warmth.ports import PodWatch, Requester, Warmth
from headroom.controller.warmth.warmer import Warmer

__all__ = ["PodWatch", "Requester", "Warmer", "Warmth"]

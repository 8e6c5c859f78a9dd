"""Fixtures: a real Envoy, and the replicas that a test starts."""

from support.fakes_gateway import front, started

__all__ = ["front", "started"]

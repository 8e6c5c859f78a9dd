"""For every test: time that a crowded machine takes is no failure of a property."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("crowded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crowded")

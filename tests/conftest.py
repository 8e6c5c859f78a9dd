"""For every test: time that a crowded machine takes is no failure of a property.

Where `CI` is set the draws of properties and fuzzers are fixed, so that a landing fails for what
it changed. Everywhere else they are new in each run, and `make fuzz` searches for longer.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

CROWDED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", CROWDED, derandomize=False)
settings.register_profile("fixed", CROWDED, derandomize=True, database=None)
settings.load_profile("fixed" if os.environ.get("CI") else "searching")

"""The bounds of vLLM's histograms, which the plant fills."""

from __future__ import annotations

import math

FIRST_BOUNDS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `time_to_first_token_seconds` (v1/metrics/loggers.py)."""
TOKEN_BOUNDS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `request_time_per_output_token_seconds`."""
END_BOUNDS_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    240.0, 480.0, 960.0, 1920.0, 7680.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `e2e_request_latency_seconds`."""
LENGTH_BOUNDS = (*(float(m * 10**e) for e in range(6) for m in (1, 2, 5)), math.inf)
"""vLLM 0.33 `request_prompt_tokens`, `request_generation_tokens`: 1, 2, 5 times powers of ten."""

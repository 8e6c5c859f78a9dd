"""PURE. The work of a request in tokens, as a virtual token counter (Sheng et al., OSDI 2024).

A token of a prompt counts once, a generated one `OUTPUT_WEIGHT` times. A tenant is charged a
request's expected answer when it starts, and the difference when it ends.
"""

from __future__ import annotations

OUTPUT_WEIGHT = 2.0


def work_tokens(prompt_tokens: float, output_tokens: float) -> float:
    """Return the work of a request in tokens."""
    return prompt_tokens + OUTPUT_WEIGHT * output_tokens

"""The processor time of each rendering of a chat template, and the size of all that it makes."""

from __future__ import annotations

import math
import threading
import time

from jinja2 import TemplateError

MOST_CPU_S = 2.0
"""Processor time of one rendering; a message takes 5 to 35 us."""
MOST_MADE = 1 << 29
"""Size of all values that one rendering makes, which may all be kept."""


class _Spent(threading.local):
    """Use by the rendering of this thread: the event loop and a worker may render at once.

    A template is compiled without any bound: nothing is computed then.
    """

    cpu_s = math.inf
    look_at_s = math.inf
    made = 0


class RenderingBudget:
    """Budget of a rendering, from `begin` on in its thread."""

    def __init__(self, most_cpu_s: float) -> None:
        self._most_cpu_s = most_cpu_s
        self._spent = _Spent()

    def begin(self) -> None:
        """Give the rendering that follows in this thread its time and room."""
        self._spent.cpu_s = time.thread_time() + self._most_cpu_s
        self._spent.look_at_s = time.monotonic() + self._most_cpu_s
        self._spent.made = 0

    def step(self) -> bool:
        """True; raises TemplateError when the time is over."""
        if time.monotonic() > self._spent.look_at_s:
            # the processor's clock takes 20 times as long to read
            left_s = self._spent.cpu_s - time.thread_time()
            if left_s <= 0:
                raise TemplateError(f"more than {self._most_cpu_s:g} s of rendering")
            self._spent.look_at_s = time.monotonic() + left_s
        return True

    def charge(self, size: int) -> None:
        """Count what was made, or will be; raises TemplateError when all is too large."""
        spent = self._spent
        spent.made += size
        if spent.made > MOST_MADE:
            raise TemplateError(f"values of more than {MOST_MADE} characters in all")

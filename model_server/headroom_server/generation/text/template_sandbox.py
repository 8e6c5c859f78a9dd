"""The sandbox of chat templates, with bounds on the time and the texts of a rendering.

Jinja's sandbox keeps a template from Python's internals, and bounds each range. It bounds neither
loops within loops, nor macros that call each other, nor a text that is doubled in a loop. So each
body reads the clock when it is entered, and whatever joins or repeats texts has a largest size. A
single call of a filter or a method is not interrupted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_CPU_S = 2.0
"""Processor time of one rendering; a message takes 4 to 35 us."""
MOST_CHARACTERS = 1 << 24
"""Length of each text and list that a template makes, and of the prompt."""
MOST_BITS = 1 << 12
"""Size of each whole number that a template computes."""


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """A sandbox whose templates may be rendered after `begin`, within the bounds."""

    intercepted_binops = frozenset(("+", "*", "**"))

    def __init__(self, *, most_cpu_s: float = MOST_CPU_S, **options: Any) -> None:
        super().__init__(**options)
        self._most_cpu_s = most_cpu_s
        self._until = threading.local()  # the event loop and a worker may render at once

    def begin(self) -> None:
        """Give the rendering that follows in this thread its time."""
        self._until.cpu_s = time.thread_time() + self._most_cpu_s
        self._until.look_at_s = time.monotonic() + self._most_cpu_s

    @property
    def step(self) -> bool:
        """True; raises TemplateError when the time is over."""
        if time.monotonic() > self._until.look_at_s:
            # the processor's clock takes 20 times as long to read
            left_s = self._until.cpu_s - time.thread_time()
            if left_s <= 0:
                raise TemplateError(f"more than {self._most_cpu_s:g} s of rendering")
            self._until.look_at_s = time.monotonic() + left_s
        return True

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join what a template, a block or a macro writes."""
        kept, length = [], 0
        for part in parts:
            length += len(part)
            _check(length)
            kept.append(part)
        return "".join(kept)

    def joined(self, *values: object) -> str:
        """Return what the operator `~` makes of values."""
        return self.concat(map(str, values))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Add, multiply or raise to a power; the result has a largest size."""
        if operator == "+":
            if isinstance(left, str | list | tuple):
                _check(len(left) + _length(right))
            return left + right
        if isinstance(left, int) and isinstance(right, int):
            one, other = left.bit_length(), right.bit_length()
            _check(one + other if operator == "*" else one * right, MOST_BITS, "bits")
        elif isinstance(left, int):
            _check(left * _length(right))
        elif isinstance(right, int):
            _check(_length(left) * right)
        return super().call_binop(context, operator, left, right)

    def _generate(self, source: nodes.Template, *others: Any, **options: Any) -> str:
        """Compile a template to Python: Jinja's hook."""
        bounded = _Bounded().visit(source).set_environment(self)
        return super()._generate(bounded, *others, **options)


_STEP = nodes.EnvironmentAttribute("step")


class _Bounded(NodeTransformer):
    """Adds a step to each body that a template may enter more than once."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named by Jinja
        """Look at the clock for each item, also for those that the loop's condition skips."""
        if node.test is not None:
            node.test = nodes.And(_STEP, node.test)
        return self._body(node)

    def _body(self, node: nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block) -> nodes.Node:
        node.body.insert(0, nodes.ExprStmt(_STEP))
        return self.generic_visit(node)

    visit_Macro = visit_CallBlock = visit_Block = _body  # noqa: N815 - named by Jinja

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Replace the operator, which Jinja does not intercept."""
        joined = nodes.EnvironmentAttribute("joined")
        return self.generic_visit(nodes.Call(joined, node.nodes, [], None, None))


def _length(value: object) -> int:
    return len(value) if isinstance(value, str | list | tuple) else 0


def _check(size: int, most: int = MOST_CHARACTERS, unit: str = "characters") -> None:
    if size > most:
        raise TemplateError(f"a value of more than {most} {unit}")

"""The sandbox of chat templates, with bounds on the time and the texts of a rendering.

Jinja's sandbox keeps a template from Python's internals, and bounds each range. It bounds neither
loops within loops, nor macros that call each other, nor what a single call makes. So each body
reads the clock when it is entered, and each value has a largest size, which is known before it is
made (`template_calls`). Nothing is computed when a template is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter

from headroom_server.generation.text.template_budget import MOST_CPU_S, RenderingBudget
from headroom_server.generation.text.template_calls import (
    COMPARING,
    FILTERS,
    Size,
    compared_size,
    size_of_call,
    unchanged,
)
from headroom_server.generation.text.template_nodes import Bounded
from headroom_server.generation.text.template_sizes import (
    CONTAINERS,
    PIECE,
    VALUES,
    check,
    deep_size,
    field_size,
    flat_size,
    percent_size,
    shown,
)

MOST_BITS = 1 << 12
"""Size of each whole number that a template computes."""


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """A sandbox whose templates may be rendered after `begin`, within the bounds."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, *, most_cpu_s: float = MOST_CPU_S, **options: Any) -> None:
        super().__init__(finalize=shown, **options)
        self._budget = RenderingBudget(most_cpu_s)
        self.begin = self._budget.begin
        self._charge = self._budget.charge
        filters: dict[str, Any] = self.filters
        tests: dict[str, Any] = self.tests
        self.filters = {}
        for name in FILTERS.keys() & filters.keys():
            self.add_filter(name, filters[name])
        for name in COMPARING:
            tests[name] = self._bounded(tests[name], compared_size)
        del self.globals["lipsum"]

    def add_filter(self, name: str, function: Callable[..., Any]) -> None:
        """Add a filter, or replace it; FILTERS has its size."""
        self.filters[name] = self._bounded(function, FILTERS[name])

    @property
    def step(self) -> bool:
        """True; raises TemplateError when the time is over."""
        return self._budget.step()

    def concat(self, parts: Iterable[str]) -> str:
        """Join what a template, a block or a macro writes."""
        kept, length = [], 0
        for part in parts:
            length += len(part)
            check(length)
            kept.append(part)
        self._charge(length)
        return "".join(kept)

    def joined(self, *values: object) -> str:
        """Return the text that the operator `~` makes of values."""
        return self.concat(str(shown(value)) for value in values)

    def made(self, value: Any) -> Any:
        """Return a result, once its size is counted."""
        if isinstance(value, str):
            self._charge(len(value))
        elif isinstance(value, CONTAINERS):
            self._charge(PIECE * len(value))
        return value

    def comparable(self, value: Any) -> Any:
        """Return a value that may be compared or be a key, with all that it contains."""
        if isinstance(value, CONTAINERS):
            deep_size(value)
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item."""
        if type(argument) is tuple:
            deep_size(argument)
        return super().getitem(obj, argument)

    def call(self, context: Context, called: Any, /, *args: Any, **options: Any) -> Any:
        """Call a function, a macro, or a method whose result has a largest size."""
        owner = getattr(called, "__self__", None)
        if isinstance(owner, VALUES):
            # Jinja adds variables of loops and blocks, which methods do not take
            given = {name: one for name, one in options.items() if not name.startswith("_")}
            check(size_of_call(owner, called.__name__, args, given))
            return self.made(called(*args, **given))
        if called is dict:
            deep_size(args)
        return super().call(context, called, *args, **options)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Add, multiply, raise to a power or format; the result has a largest size."""
        if operator == "+":
            if isinstance(left, str) and isinstance(right, str):
                self._charge(check(len(left) + len(right)))
            elif isinstance(left, list | tuple):
                self._charge(check(flat_size(left) + flat_size(right)))
            return left + right
        if operator == "%":
            if isinstance(left, str):
                self._charge(check(percent_size(left, right)))
        elif isinstance(left, int) and isinstance(right, int):
            one, other = left.bit_length(), right.bit_length()
            check(one + other if operator == "*" else one * right, MOST_BITS, "bits")
        elif isinstance(left, int):
            self._charge(check(left * flat_size(right)))
        elif isinstance(right, int):
            self._charge(check(flat_size(left) * right))
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return `str.format` with bounded fields for that method: Jinja's hook."""
        if super().wrap_str_format(value) is None:
            return None

        def formatted(*args: Any, **named: Any) -> str:
            if value.__name__ == "format_map":
                args, named = (), *args
            return str(self.made(_Formatter(self).vformat(str(value.__self__), args, named)))

        return formatted

    def _bounded(self, function: Callable[..., Any], size: Size) -> Callable[..., Any]:
        """Return a filter or test that checks the clock and the size of its result.

        Jinja computes none that takes the context before a template is rendered.
        """
        passed = getattr(getattr(function, "jinja_pass_arg", None), "name", None)

        @pass_context
        def bounded(context: Context, value: Any, *args: Any, **options: Any) -> Any:
            if size is not unchanged:
                _ = self.step
                if isinstance(value, Iterator):
                    value = self.made(list(value))
                check(size(value, *args, **options))
            if passed is None:
                return self.made(function(value, *args, **options))
            first = {"context": context, "eval_context": context.eval_ctx, "environment": self}
            return self.made(function(first[passed], value, *args, **options))

        return bounded

    def _generate(self, source: nodes.Template, *others: Any, **options: Any) -> str:
        """Compile a template to Python: Jinja's hook."""
        bounded = Bounded().visit(source).set_environment(self)
        return super()._generate(bounded, *others, **options)


class _Formatter(SandboxedFormatter):
    """`str.format` whose fields have a largest size, alone and in all."""

    _size = 0

    def convert_field(self, value: Any, conversion: Any) -> Any:
        deep_size(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        self._size = check(self._size + field_size(value, format_spec))
        return str(super().format_field(value, format_spec))

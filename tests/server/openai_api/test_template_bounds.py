"""A rendering of a chat template ends, and its texts and numbers stay small, whatever it says."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.chat_template import ChatTemplate
from headroom_server.generation.text.template_budget import MOST_CPU_S as MOST_SHIPPED_CPU_S
from headroom_server.generation.text.template_sandbox import BoundedSandbox

MOST_CPU_S = 0.05

DOUBLED = (
    "{% set n = namespace(x=[]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
)
NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
TEXT = "{% set n = namespace(x='0123456789abcdef') %}{% for i in range(40) %}"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(NESTED, id="loops within loops"),
        pytest.param(
            "{% for a in range(99999) %}{% for b in range(99999) if 0 %}{% endfor %}{% endfor %}",
            id="loops whose condition skips all",
        ),
        pytest.param(
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
            "{{ m(40) }}",
            id="a macro that calls itself twice",
        ),
        pytest.param(
            DOUBLED + "{% for a in n.x recursive %}{{ loop(a) }}{% endfor %}",
            id="a recursive loop over a list within itself",
        ),
        pytest.param(
            "{% block b %}{% if d is not defined or d %}{{ self.b() }}{{ self.b() }}{% endif %}"
            "{% endblock %}",
            id="a block that calls itself",
        ),
        pytest.param(
            "{% for a in range(99999) %}{% set x = range(99999) | list %}{% endfor %}",
            id="long filters",
        ),
    ],
)
def test_rendering_that_does_not_end_is_ended(source: str) -> None:
    sandbox = BoundedSandbox(most_cpu_s=MOST_CPU_S)
    template = sandbox.from_string(source)
    sandbox.begin()
    began_s = time.thread_time()
    with pytest.raises((TemplateError, RecursionError)):
        template.render()
    assert time.thread_time() - began_s < 10 * MOST_CPU_S


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(TEXT + "{% set n.x = n.x ~ n.x %}{% endfor %}", id="~"),
        pytest.param(TEXT + "{% set n.x = n.x + n.x %}{% endfor %}", id="+"),
        pytest.param(TEXT + "{% set n.x = n.x * 2 %}{% endfor %}", id="text times number"),
        pytest.param(TEXT + "{% set n.x = 2 * n.x %}{% endfor %}", id="number times text"),
        pytest.param("{% set x = [1] * 10000000000 %}", id="a list"),
        pytest.param(TEXT + "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}", id="set"),
        pytest.param(
            "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}"
            + TEXT
            + "{% set n.x = m(n.x) %}{% endfor %}",
            id="a macro",
        ),
        pytest.param(
            "{% for a in range(99999) %}" + 999 * "a" + "{% endfor %}",
            id="what is written",
        ),
        pytest.param("{% set n = 9 %}{% set x = n ** (n ** n) %}", id="a power"),
        pytest.param("{{ 9 ** 999999999 }}", id="a power that is constant"),
        pytest.param(
            "{% set n = namespace(x=9) %}{% for i in range(40) %}{% set n.x = n.x * n.x %}"
            "{% endfor %}",
            id="a product",
        ),
    ],
)
def test_value_of_a_template_has_a_largest_size(source: str) -> None:
    with pytest.raises(InvalidRequestError, match="a value of more than"):
        ChatTemplate(source, {}).render([])


def test_operators_compute_what_they_compute_in_jinja() -> None:
    source = "{{ 1 + 2 }} {{ 2 * 3 }} {{ 2 ** 8 }} {{ 'a' * 3 }} {{ 2 ** -1 }} {{ 'a' ~ 1 ~ none }}"
    source += " {{ [1] + [2] }} {{ 1.5 * 2 }} {{ 'a' + 'b' }}"
    expected = "3 6 256 aaa 0.5 a1None [1, 2] 3.0 ab"
    assert ChatTemplate(source, {}).render([]) == expected


def test_each_rendering_has_its_own_time() -> None:
    sandbox = BoundedSandbox(most_cpu_s=MOST_CPU_S)
    endless, short = map(sandbox.from_string, (NESTED, "{% for a in range(9) %}a{% endfor %}"))
    sandbox.begin()
    with pytest.raises(TemplateError, match=r"more than 0.05 s of rendering"):
        endless.render()
    sandbox.begin()
    assert short.render() == 9 * "a"


LISTS = (
    "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(24) %}"
    "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}"
)
TUPLES = (
    "{% set n = namespace(x=(1,)) %}{% for i in range(24) %}{% set n.x = (n.x, n.x) %}{% endfor %}"
)
LONG = "{% set x = 'ab' * 4000000 %}"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ 'a'.center(200000000) | length }}", id="a width of a method"),
        pytest.param("{{ 'a'['zfill'](200000000) | length }}", id="a method by subscription"),
        pytest.param("{{ ['a'] | map('center', 200000000) | list | length }}", id="within map"),
        pytest.param("{{ 'a' | indent(200000000, true) | length }}", id="an indentation"),
        pytest.param("{{ '%200000000d' % 1 }}", id="a width of %"),
        pytest.param("{{ '%.200000000f' | format(1) | length }}", id="a precision of format"),
        pytest.param("{{ '%*d' % (200000000, 1) }}", id="a width that is a value"),
        pytest.param("{{ '{:200000000d}'.format(1) | length }}", id="a width of a field"),
        pytest.param("{{ '{:{}d}'.format(1, 200000000) | length }}", id="a width within a field"),
        pytest.param(LONG + "{{ x.replace('a', 'b' * 100) | length }}", id="replace"),
        pytest.param(LONG + "{{ x | replace('a', 'b' * 100) | length }}", id="the filter replace"),
        pytest.param(LONG + "{{ x | join('b' * 100) | length }}", id="join"),
        pytest.param(LONG + "{{ ('b' * 100).join([x, x, x]) | length }}", id="a text many times"),
        pytest.param(LONG + "{{ x.split('a') | length }}", id="many pieces"),
        pytest.param(LONG + "{{ x | list | length }}", id="many items"),
        pytest.param(LONG + "{{ x | sort | length }}", id="sorted characters"),
        pytest.param("{{ [[1], [2]] | sum(start=[]) }}", id="a sum of lists"),
        pytest.param("{{ [1, [2]] | tojson(indent=200000000) }}", id="an indentation of JSON"),
        pytest.param("{{ ('f' * 8000000) | int(base=16) % 7 }}", id="digits"),
        pytest.param("{{ 1.5 | round(9999999, 'floor') }}", id="a precision"),
        pytest.param("{{ (1).from_bytes }}{{ (1).to_bytes(200000000) }}", id="bytes of a number"),
        pytest.param("{{ ('a' * 99).encode('utf-32') }}", id="bytes"),
        pytest.param("{{ strftime_now('%c' * 9999) }}", id="a date"),
        pytest.param(LISTS + "{{ n.x }}", id="lists within lists as text"),
        pytest.param(LISTS + "{{ n.x ~ '' }}", id="as joined text"),
        pytest.param(LISTS + "{{ n.x | string | length }}", id="as a filtered text"),
        pytest.param(LISTS + "{{ '{!r:.3}'.format(n.x) }}", id="as a field"),
        pytest.param(LISTS + "{{ n }}", id="in a namespace as text"),
        pytest.param(LISTS + "{{ n.x | tojson | length }}", id="as JSON"),
        pytest.param(LISTS + "{{ n.x == n.y }}", id="compared"),
        pytest.param(LISTS + "{{ [n.x] | select('eq', n.y) | list | length }}", id="by a test"),
        pytest.param(LISTS + "{{ [n.x].count(n.y) }}", id="by a method"),
        pytest.param(LISTS + "{{ [n.x, n.y] | sort | length }}", id="sorted"),
        pytest.param(TUPLES + "{{ {n.x: 1} | length }}", id="tuples as a key"),
        pytest.param(TUPLES + "{{ {}[n.x] }}", id="tuples as a subscript"),
        pytest.param(TUPLES + "{{ dict([(n.x, 1)]) | length }}", id="tuples as a key of dict()"),
        pytest.param(
            "{% set n = namespace(x=[]) %}{% for i in range(99) %}"
            "{% set n.x = n.x + ['a' * 9999999 ~ i] %}{% endfor %}",
            id="all values together",
        ),
        pytest.param(
            "{% set n = namespace(x=[]) %}{% set t = 'a' * 9999999 %}{% for i in range(99) %}"
            "{% set n.x = n.x + [t[1:]] %}{% endfor %}",
            id="slices together",
        ),
    ],
)
def test_single_call_is_refused_before_it_is_made(source: str) -> None:
    template = ChatTemplate(source, {})
    began_s = time.thread_time()
    with pytest.raises(InvalidRequestError):
        template.render([])
    assert time.thread_time() - began_s < 2 * MOST_SHIPPED_CPU_S


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ '%1000000000d' % 1 }}", id="%"),
        pytest.param("{{ '%1000000000d' | format(1) }}", id="a filter"),
        pytest.param("{{ 'a' | center(1000000000) }}", id="a filter with a width"),
    ],
)
def test_compiling_computes_nothing(source: str) -> None:
    began_s = time.thread_time()
    ChatTemplate("{% if false %}" + source + "{% endif %}", {})
    assert time.thread_time() - began_s < 0.5


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ 'a' | wordwrap(1) }}", id="a filter without a size"),
        pytest.param("{{ " + "9" * 5000 + " }}", id="a number of many digits"),
        pytest.param("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", id="many brackets"),
        pytest.param("{% for i in x %}" * 99 + "{% endfor %}" * 99, id="loops in loops"),
    ],
)
def test_template_that_cannot_be_bounded_is_not_loaded(source: str) -> None:
    with pytest.raises(LoadError, match="the chat template must be valid Jinja"):
        ChatTemplate(source, {})


CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": " Be brief.\n"},
    {"role": "user", "content": "a <think>b</think>c"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "arguments": {"x": [1]}}]},
]


@pytest.mark.parametrize(
    "expression",
    [
        "messages[0].content | trim",
        "messages[0]['content'].strip() ~ '!'",
        "messages[1].content.split('</think>')[-1].lstrip('\n')",
        "messages[1:] | selectattr('role', 'equalto', 'user') | list | length",
        "messages | rejectattr('content', 'none') | map(attribute='role') | join(', ')",
        "messages | map(attribute='role') | map('upper') | list",
        "messages[2].tool_calls | tojson(indent=2)",
        "messages[2] | tojson",
        "messages[2].tool_calls[0].arguments | items | list",
        "messages[2].tool_calls[0].arguments | dictsort",
        "messages[2].tool_calls[0].arguments == {'x': [1]}",
        "messages | groupby('role') | map('first') | list",
        "messages | map(attribute='role') | unique | sort | reverse | list",
        "[3, 1, 2] | sort(reverse=true) | first, [3, 1] | sum, [3, 1] | max",
        "'{}: {:>5}|{!r}'.format('a', 1, 'b')",
        "'%s=%05.1f%%' % ('a', 1.25)",
        "'%(a)s' | format(a=1), 'a b' | replace(' ', '_'), 'a\nb' | indent(2)",
        "'a,b'.split(','), 'a\nb'.splitlines(), ','.join(['a', 'b']), 'a'.rjust(3)",
        "'7' | int + 1, 1.55 | round(1), '2.5' | float, -3 | abs, undefined_name | default('d')",
        "namespace(a=[1]).a, dict(a=1).get('a'), 'b' in {'b': 1}, ('a', 'b')[::-1]",
        "missing, none, true, 1.5, [1, 'a'], {'a': ('b',)}",
        "'title case' | title, 'a b c' | wordcount, 'abcdefghijkl' | truncate(8, true, '..')",
        "range(3) | list, 'abc' | list, 'abc'[1:], 'abc' | last",
        "'a' if messages[0].role in ['system', 'developer'] else 'b'",
        "messages[0].role < messages[1].role, 1 < 2 <= 2, [1] + [2], (1,) + (2,)",
    ],
)
def test_expressions_of_published_templates_are_those_of_jinja(expression: str) -> None:
    """In loops too, whose variables Jinja passes to every call."""
    source = "{% for message in messages %}{{ " + expression + " }}{% endfor %}"
    environment = ImmutableSandboxedEnvironment()
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, indent=indent)
    assert ChatTemplate(source, {}).render(CHAT) == environment.from_string(source).render(
        messages=CHAT
    )

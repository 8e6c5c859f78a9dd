"""A rendering of a chat template ends, and its texts and numbers stay small, whatever it says."""

from __future__ import annotations

import time

import pytest
from jinja2 import TemplateError

from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.chat_template import ChatTemplate
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

"""Chat templates: messages to a prompt, by the model's own Jinja template in a sandbox.

The environment is that of `transformers` (utils/chat_template_utils.py): trimmed blocks, loop
controls, `raise_exception`, `strftime_now`, `tojson` without escapes, and the `generation` block,
which marks what an assistant says and renders its content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.template_sandbox import BoundedSandbox
from headroom_server.generation.text.tokenizer_folder import read_json, token_name
from headroom_server.generation.text.tool_calls import style_of
from headroom_server.repository import files

MAX_TEMPLATE_BYTES = 1 << 17
"""Largest template that is compiled; Gemma 4's has 12 KiB. Compiling one of this size takes up to 8
s, of 1 MiB over 40 s."""
MOST_DATE_CHARACTERS = 256
_WIDE = re.compile(r"%[^%a-zA-Z]*\d")
"""A part of a date with a width, which the C library fills however large it is."""
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token")


class _GenerationBlock(Extension):
    """`{% generation %}...{% endgeneration %}`: renders its content."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        """Return the content's nodes."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """One model's template, and the one for chats with tools, if it is another."""

    def __init__(
        self, source: str, special_tokens: Mapping[str, str], tool_source: str | None = None
    ) -> None:
        """Compile the templates.

        Raises:
            LoadError: one is not valid.
        """
        with_tools = source if tool_source is None else tool_source
        self._sandbox = _sandbox()
        self._template = self._compiled(source)
        self._tool_template = self._compiled(with_tools)
        self._special_tokens = dict(special_tokens)
        self.takes_tools = "tools" in with_tools
        """Whether it can describe tools to the model."""
        self.tool_style = style_of(with_tools)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the prompt.

        Raises:
            InvalidRequestError: the template does not accept these messages.
        """
        template = self._template if tools is None else self._tool_template
        self._sandbox.begin()
        try:
            return template.render(
                **(options or {}),
                **self._special_tokens,
                messages=messages,
                tools=tools,
                documents=None,
                add_generation_prompt=add_generation_prompt,
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise InvalidRequestError(
                f"messages must fit the model's chat template; got {error!s:.200}"
            ) from error
        except (RecursionError, MemoryError, AttributeError, AssertionError) as error:
            raise InvalidRequestError(
                f"messages must fit the model's chat template; got {type(error).__name__}"
            ) from error

    def _compiled(self, source: str) -> Template:
        try:
            return self._sandbox.from_string(source)
        except (TemplateError, RecursionError, MemoryError, SyntaxError, ValueError) as error:
            # the last three are Python's, of brackets and blocks within each other, and numbers
            raise LoadError(f"the chat template must be valid Jinja; got {error!s:.200}") from error


def _sandbox() -> BoundedSandbox:
    sandbox = BoundedSandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[loopcontrols, _GenerationBlock],
    )
    sandbox.add_filter("tojson", _tojson)
    sandbox.globals["raise_exception"] = _raise
    sandbox.globals["strftime_now"] = _strftime_now
    return sandbox


def _raise(message: object) -> None:
    raise TemplateError(str(message))


def _strftime_now(form: str) -> str:
    if len(form) > MOST_DATE_CHARACTERS or _WIDE.search(form):
        raise TemplateError(f"a date must have at most {MOST_DATE_CHARACTERS} characters")
    return datetime.now(UTC).strftime(form)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def load_chat_template(folder: Path) -> ChatTemplate | None:
    """Return a folder's template; None if the model has none.

    It is in chat_template.jinja, or in tokenizer_config.json: one, or several by name. As in
    transformers, `tool_use` is for chats with tools, and `default` for the others; where there is a
    chat_template.jinja, the other one is in additional_chat_templates.

    Raises:
        LoadError: it is not valid.
    """
    config = read_json(folder, "tokenizer_config.json")
    source, tool_source = _sources(folder, config.get("chat_template"))
    if source is None:
        return None
    if max(len(source), len(tool_source or "")) > MAX_TEMPLATE_BYTES:
        raise LoadError(f"the chat template must have at most {MAX_TEMPLATE_BYTES} bytes; got more")
    special = {name: text for name in SPECIAL_TOKENS if (text := token_name(config.get(name)))}
    return ChatTemplate(source, special, tool_source)


def _sources(folder: Path, configured: object) -> tuple[str | None, str | None]:
    """Return the usual template, and the one for chats with tools if it is another."""
    in_file = _text(folder, "chat_template.jinja")
    if in_file is not None:
        return in_file, _text(folder, "additional_chat_templates/tool_use.jinja")
    if isinstance(configured, list):
        named = {
            one.get("name"): one.get("template") for one in configured if isinstance(one, dict)
        }
        return _string(named.get("default")), _string(named.get("tool_use"))
    return _string(configured), None


def _string(found: object) -> str | None:
    return found if isinstance(found, str) else None


def _text(folder: Path, name: str) -> str | None:
    data = files.read(folder, folder / name, MAX_TEMPLATE_BYTES)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"{name} must be readable text in UTF-8") from error

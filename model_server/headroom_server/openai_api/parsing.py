"""PURE. Bodies of requests to OpenAI's API become values; errors name the field and the rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from headroom_server.errors import EncodingError, NotJsonError, TooLargeError
from headroom_server.generation.values import Sampling
from headroom_server.openai_api import schemas
from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.openai_api.parameters import (
    ChatCall,
    Choices,
    CompletionCall,
    Constraint,
    ConstraintKind,
    PromptInput,
    ToolUse,
)
from headroom_server.openai_api.schemas import (
    ChatFields,
    CompletionFields,
    Message,
    SamplingFields,
)
from headroom_server.openai_api.usual_bodies import usual_chat, usual_completion
from headroom_server.protocols.body_bounds import without_strings

F = TypeVar("F", bound=BaseModel)

UNCHECKED_BYTES = 64 * 1024
"""Smaller bodies are parsed as they are: they cost at most 8 MiB."""
OTHER_COMMAS = 64 * 1024
"""Of everything that is not a prompt of token numbers."""
MAX_PARTS = 64 * 1024
"""Lists, objects and fields: 100 ms and 64 MiB if none of them is a known one."""
MAX_STRINGS = 64 * 1024
COMPLETION_TOKENS = 16
"""OpenAI's default of max_tokens for completions."""


def check_parts(body: bytes, context_tokens: int) -> None:
    """Check that a body has no more values than a request needs, before it is parsed.

    `[]` has 2 bytes in a body and takes 64 in memory.

    Raises:
        TooLargeError: it has.
    """
    if len(body) <= UNCHECKED_BYTES:
        return
    most = OTHER_COMMAS + 2 * context_tokens
    if not _fits(body, most) and not _fits(without_strings(body, MAX_STRINGS), most):
        raise TooLargeError(
            f"the body must have at most {most} values and {MAX_PARTS} lists, objects and fields; "
            "got more"
        )


def _fits(body: bytes, commas: int) -> bool:
    parts = sum(body.count(mark) for mark in (b"[", b"{", b":"))
    return parts <= MAX_PARTS and body.count(b",") <= commas


def parse_completion(body: bytes) -> CompletionCall:
    """Parse the body of POST /v1/completions.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    usual = usual_completion(body, COMPLETION_TOKENS)
    return validated_completion(body) if usual is None else usual


def validated_completion(body: bytes) -> CompletionCall:
    """Parse any body; see `parse_completion`."""
    fields = validated(CompletionFields, body)
    prompts = _prompts(fields.prompt)
    if fields.best_of not in (None, fields.n or 1):
        raise InvalidFieldError("best_of", f"best_of must equal n; got {fields.best_of}")
    if fields.echo and fields.logprobs is not None:
        raise InvalidFieldError(
            "echo", "echo must be false with logprobs: prompts have no probabilities here"
        )
    default = COMPLETION_TOKENS if fields.max_tokens is None else fields.max_tokens
    choices = _choices(fields, max_tokens=default, logprobs=fields.logprobs)
    if len(prompts) * choices.n > schemas.MAX_CHOICES:
        raise InvalidFieldError(
            "n",
            f"n times the number of prompts must be at most {schemas.MAX_CHOICES}; "
            f"got {len(prompts) * choices.n}",
        )
    return CompletionCall(
        model=fields.model,
        prompts=prompts,
        choices=choices,
        echo=bool(fields.echo),
        special_tokens=fields.add_special_tokens is not False,
    )


def parse_chat(body: bytes) -> ChatCall:
    """Parse the body of POST /v1/chat/completions.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    usual = usual_chat(body)
    return validated_chat(body) if usual is None else usual


def validated_chat(body: bytes) -> ChatCall:
    """Parse any body; see `parse_chat`."""
    fields = validated(ChatFields, body)
    if fields.max_tokens is not None and fields.max_completion_tokens is not None:
        raise InvalidFieldError(
            "max_tokens", "max_tokens must be omitted with max_completion_tokens; got both"
        )
    max_tokens = fields.max_completion_tokens or fields.max_tokens
    logprobs = (fields.top_logprobs or 0) if fields.logprobs else None
    tools = _tools(fields)
    choices = _choices(fields, max_tokens=max_tokens, logprobs=logprobs)
    if tools is not None and (tools.forced or tools.required) and choices.constraint is not None:
        raise InvalidFieldError(
            choices.constraint.field,
            f"{choices.constraint.field} must be omitted if tool_choice demands a call",
        )
    options = dict(fields.chat_template_kwargs or {})
    if fields.reasoning_effort is not None:
        options.setdefault("reasoning_effort", fields.reasoning_effort)
    reserved = {"messages", "tools", "documents", "add_generation_prompt"}.intersection(options)
    if reserved:
        raise InvalidFieldError(
            "chat_template_kwargs", f"chat_template_kwargs must not set {min(reserved)}"
        )
    _check_arguments(fields.messages)
    return ChatCall(
        model=fields.model,
        messages=tuple(_message(one) for one in fields.messages),
        choices=choices,
        tools=tools,
        add_generation_prompt=fields.add_generation_prompt is not False,
        template_options=MappingProxyType(options),
    )


def validated(fields: type[F], body: bytes) -> F:
    """Return the fields of a body.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    try:
        return fields.model_validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    # of the alternatives of a field, the one that the value comes closest to
    first = problems[0]["loc"][:1]

    def close(one: Any) -> tuple[bool, int, bool]:
        return one["loc"][:1] == first, len(one["loc"]), not one["type"].endswith("_type")

    raise _invalid(max(problems, key=close))


def explain(error: NotJsonError, headers: dict[bytes, bytes]) -> None:
    """Raise a better error if a body is no JSON because it is compressed."""
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding.lower() != b"identity":
        raise EncodingError(
            f"content-encoding must be identity; got {encoding.decode('latin-1')!r:.40}"
        ) from error


def _invalid(problem: Any) -> Exception:
    kind, rule = problem["type"], str(problem["msg"])
    if kind == "json_invalid":
        return NotJsonError(f"the body must be JSON; got {rule.removeprefix('Invalid JSON: ')}")
    field = _field(problem["loc"])
    if kind == "extra_forbidden":
        field = ".".join(filter(None, (_field(problem["loc"][:-1]), str(problem["loc"][-1])[:80])))
        return InvalidFieldError(field, f"unknown parameter: {field}", "unknown_parameter")
    if kind == "missing":
        return InvalidFieldError(
            field, f"missing required parameter: {field}", "missing_required_parameter"
        )
    rule = _SHOULD.sub("must", rule.removeprefix("Value error, "))
    if kind == "value_error":
        return InvalidFieldError(field or rule.split(" ", 1)[0], rule)
    code = "invalid_type" if kind.endswith("_type") else "invalid_value"
    return InvalidFieldError(
        field, f"{field or 'the body'} {rule}; got {_shown(problem['input'])}", code
    )


_SHOULD = re.compile(r"^\w+ should")
_NAMES = frozenset(
    field.alias or name
    for model in vars(schemas).values()
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name, field in model.model_fields.items()
)


def _field(location: tuple[Any, ...]) -> str | None:
    """Return a field's path, without the names that the validator gives to alternatives."""
    path = list(location)
    names = [str(one) for at, one in enumerate(path) if at == 0 or one in _NAMES or _index(one)]
    return ".".join(names) or None


def _index(part: object) -> bool:
    return isinstance(part, int)


def _shown(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    return "an object" if isinstance(value, dict) else "a list"


def _prompts(prompt: Any) -> tuple[PromptInput, ...]:
    if isinstance(prompt, str):
        return (prompt,)
    if isinstance(prompt[0], int):
        return (tuple(prompt),)
    return tuple(one if isinstance(one, str) else tuple(one) for one in prompt)


def _choices(fields: SamplingFields, *, max_tokens: int | None, logprobs: int | None) -> Choices:
    stop = fields.stop or ()
    stream = fields.stream_options
    min_tokens = fields.min_tokens or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise InvalidFieldError(
            "min_tokens", f"min_tokens must be at most max_tokens, {max_tokens}; got {min_tokens}"
        )
    return Choices(
        sampling=_sampling(fields, logprobs),
        n=fields.n or 1,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        stop_tokens=frozenset(fields.stop_token_ids or ()),
        ignore_eos=bool(fields.ignore_eos),
        include_stop=bool(fields.include_stop_str_in_output),
        constraint=_constraint(fields),
        flexible=fields.service_tier == "flex",
        stream=bool(fields.stream),
        include_usage=stream is not None and stream.include_usage,
        continuous_usage=stream is not None and stream.continuous_usage_stats,
    )


def _sampling(fields: SamplingFields, logprobs: int | None) -> Sampling:
    def given(value: float | None, default: float) -> float:
        return default if value is None else value

    return Sampling(
        temperature=given(fields.temperature, 1.0),
        top_p=given(fields.top_p, 1.0),
        top_k=max(0, fields.top_k or 0),
        min_p=given(fields.min_p, 0.0),
        presence_penalty=given(fields.presence_penalty, 0.0),
        frequency_penalty=given(fields.frequency_penalty, 0.0),
        repetition_penalty=given(fields.repetition_penalty, 1.0),
        seed=fields.seed,
        logprobs=logprobs,
        logit_bias=_logit_bias(fields.logit_bias),
    )


def _logit_bias(given: Mapping[str, Any] | None) -> Mapping[int, float]:
    biases: dict[int, float] = {}
    for name, bias in (given or {}).items():
        if not name.isdecimal() or len(name) > 10:
            raise InvalidFieldError(
                "logit_bias", f"logit_bias must have token numbers as keys; got {name!r:.40}"
            )
        if not isinstance(bias, int | float) or not -100 <= bias <= 100:
            raise InvalidFieldError(
                "logit_bias", f"logit_bias must be between -100 and 100; got {bias!r:.40}"
            )
        biases[int(name)] = float(bias)
    return MappingProxyType(biases)


def _constraint(fields: SamplingFields) -> Constraint | None:
    found: list[Constraint] = []

    def add(kind: ConstraintKind, field: str, value: object) -> None:
        if value is not None and value is not False:
            text = value if isinstance(value, str) else orjson.dumps(value).decode()
            found.append(Constraint(kind, text, field))

    form, structured = fields.response_format, fields.structured_outputs
    if form is not None and form.json_schema is not None:
        add(ConstraintKind.JSON_SCHEMA, "response_format", form.json_schema.schema_)
    elif form is not None and form.type == "json_object":
        add(ConstraintKind.JSON_OBJECT, "response_format", "")
    add(ConstraintKind.JSON_SCHEMA, "guided_json", fields.guided_json)
    add(ConstraintKind.REGEX, "guided_regex", fields.guided_regex)
    add(ConstraintKind.CHOICE, "guided_choice", fields.guided_choice)
    add(ConstraintKind.LARK, "guided_grammar", fields.guided_grammar)
    if structured is not None:
        named = "structured_outputs"
        add(ConstraintKind.JSON_SCHEMA, named, structured.json_)
        add(ConstraintKind.REGEX, named, structured.regex)
        add(ConstraintKind.CHOICE, named, structured.choice)
        add(ConstraintKind.LARK, named, structured.grammar)
        add(ConstraintKind.JSON_OBJECT, named, "" if structured.json_object else None)
    if len(found) > 1:
        raise InvalidFieldError(
            found[1].field, f"{found[1].field} must be omitted with {found[0].field}; got both"
        )
    return found[0] if found else None


def _tools(fields: ChatFields) -> ToolUse | None:
    choice = fields.tool_choice
    if not fields.tools:
        if choice not in (None, "none", "auto"):
            raise InvalidFieldError("tool_choice", "tool_choice requires tools")
        return None
    tools = tuple(one.model_dump(exclude_none=True) for one in fields.tools)
    names = [one.function.name for one in fields.tools]
    if isinstance(choice, schemas.ToolChoice):
        if choice.function.name not in names:
            raise InvalidFieldError(
                "tool_choice",
                f"tool_choice must name one of the tools; got {choice.function.name!r:.80}",
            )
        return ToolUse(tools, forced=choice.function.name)
    return ToolUse(tools, required=choice == "required", parsed=choice != "none")


def _message(message: Message) -> Mapping[str, Any]:
    """Return a message as chat templates expect it: text as one string, arguments as objects."""
    role = "system" if message.role == "developer" else message.role
    fields: dict[str, Any] = {"role": role}
    content = message.content
    if isinstance(content, list):
        content = "\n".join(part.text for part in content)
    fields["content"] = content if content is not None else (message.refusal or "")
    for name in ("name", "tool_call_id", "reasoning_content"):
        value = getattr(message, name)
        if value is not None:
            fields[name] = value
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": _arguments(call.function.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return fields


def _check_arguments(messages: Sequence[Message]) -> None:
    """Check the values in the arguments of all earlier calls: `check_parts` sees them as strings.

    Raises:
        TooLargeError: they are too many.
    """
    texts = [call.function.arguments.encode() for one in messages for call in one.tool_calls or ()]
    if _marks(texts) <= MAX_PARTS:
        return
    if _marks([without_strings(one, MAX_STRINGS) for one in texts]) > MAX_PARTS:
        raise TooLargeError(
            f"arguments of tool calls must have at most {MAX_PARTS} values and fields together; "
            "got more"
        )


def _marks(texts: Sequence[bytes]) -> int:
    return sum(text.count(mark) for text in texts for mark in (b"[", b"{", b":", b","))


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return text

"""Reads the parameters of a request's choices: lengths, stops, sampling, constraint. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headroom_server.generation.values import Sampling
from headroom_server.openai_api.bodies.json_text import json_text
from headroom_server.openai_api.bodies.parameters import (
    Choices,
    Constraint,
    ConstraintKind,
)
from headroom_server.openai_api.bodies.schemas import (
    SamplingFields,
)
from headroom_server.openai_api.errors import InvalidFieldError


def choices_of(fields: SamplingFields, *, max_tokens: int | None, logprobs: int | None) -> Choices:
    """Return the parameters of each choice.

    Raises:
        InvalidFieldError: fields contradict each other.
    """
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
        if isinstance(bias, bool) or not isinstance(bias, int | float) or not -100 <= bias <= 100:
            raise InvalidFieldError(
                "logit_bias", f"logit_bias must be between -100 and 100; got {bias!r:.40}"
            )
        biases[int(name)] = float(bias)
    return MappingProxyType(biases)


def _constraint(fields: SamplingFields) -> Constraint | None:
    found: list[Constraint] = []

    def add(kind: ConstraintKind, field: str, value: object) -> None:
        if value is not None and value is not False:
            text = value if isinstance(value, str) else json_text(value).decode()
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

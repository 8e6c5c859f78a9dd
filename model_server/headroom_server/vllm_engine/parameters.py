"""A request's sampling as the fields of vLLM's SamplingParams. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headroom_server.generation.values import GenerationRequest

SEEDS = 2**63
"""vLLM's seeds are from 0 to this; Headroom's may be negative, as OpenAI's."""


def sampling_parameters(request: GenerationRequest) -> Mapping[str, Any]:
    """Return the fields; those of structured outputs under `structured_outputs`."""
    sampling = request.sampling
    fields: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": None if sampling.seed is None else sampling.seed % SEEDS,
        "logprobs": sampling.logprobs,
        "logit_bias": dict(sampling.logit_bias) or None,
        "max_tokens": request.max_tokens,
        "min_tokens": min(request.min_tokens, request.max_tokens),
        # the request's stop tokens include the end of sequence unless it is to be ignored
        "stop_token_ids": sorted(request.stop_tokens),
        "ignore_eos": True,
        "detokenize": False,
    }
    if request.constraint is not None:
        fields["structured_outputs"] = _structured(*request.constraint)
    return fields


def _structured(kind: str, text: str) -> Mapping[str, Any]:
    if kind == "json_object":
        return {"json_object": True}
    if kind == "choice":
        return {"choice": json.loads(text)}
    return {"json" if kind == "json_schema" else kind: text}

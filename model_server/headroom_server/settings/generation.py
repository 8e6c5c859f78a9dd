"""Settings: text generation and the classes of its requests. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from headroom_server.rule_words import text_form
from headroom_server.settings.fields import Group, Seconds, table


class SloClassSettings(Group):
    """Values for the requests of a class that do not set their own."""

    priority: int = Field(5, ge=0, le=9)
    deadline_s: Seconds | None = None
    first_token_deadline_s: Seconds | None = None
    batch: bool = False


SloClassName = Annotated[
    str,
    text_form(
        "[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?",
        "must be a name of lower-case letters, digits, ., _ and -, such as gold",
    ),
]


class GenerationSettings(Group):
    """Text generation."""

    dtype: Literal["float32", "float16", "bfloat16"] | None = None
    """Number format of weights, keys and values. Default: that of the model's folder."""
    int8_weights: bool = False
    """Whether the layers' weights are kept as int8 with a scale per channel, which saves memory."""
    decode_graphs: bool = True
    """Whether a GPU replays decodes as CUDA graphs, with FlexAttention: one per number of sequences
    (1, 2, 4, ...), recorded in warm-up. Without effect on a CPU."""
    draft_model_uri: str = Field("", max_length=4096)
    """Small model with the same vocabulary that guesses ahead, instead of what the text repeats:
    file:///path or pvc://claim/path. Needs HEADROOM_MAX_DRAFTS."""
    slo_classes: Annotated[
        dict[SloClassName, SloClassSettings] | None,
        BeforeValidator(table),
        Field(max_length=64),
    ] = None
    """Classes that requests name in `x-slo-class`, as JSON: `{"gold": {"priority": 1, "deadline_s":
    30, "first_token_deadline_s": 1, "batch": false}}`. `interactive`, `batch` (fills only what
    others leave) and, with HEADROOM_DEADLINE_S, `default` exist already."""

    context_tokens: int | None = Field(None, ge=16, le=1 << 24)
    """Maximum tokens of a prompt and its answer. Default: the model's own limit."""
    kv_cache_bytes: int | None = Field(None, ge=1 << 16, le=1 << 44)
    """Memory for keys and values. Default: what the device has left."""
    block_tokens: int | None = Field(None, ge=1, le=1024)
    """Tokens per block of keys and values. Default: 64 on a GPU, else 16."""
    max_sequences: int = Field(64, ge=1, le=4096)
    """Maximum sequences per iteration."""
    max_iteration_tokens: int = Field(512, ge=16, le=1 << 20)
    """Maximum tokens computed per iteration; longer prompts are computed in chunks."""
    max_waiting_requests: int = Field(1024, ge=1, le=1_000_000)
    """Maximum requests that wait for their prompt to be computed; one tenant may have at most as
    many as places are free, and requests of the class `batch` may fill half."""
    max_waiting_tokens: int = Field(1 << 20, ge=1, le=1 << 40)
    """Maximum tokens of prompts that wait, shared in the same way."""
    time_per_token_s: Seconds | None = None
    """Promised mean time between the tokens of an answer; chunks of prompts are cut to keep it."""
    prefix_cache: bool = True
    """Whether prompts with equal beginnings share computed blocks."""
    max_drafts: int = Field(0, ge=0, le=16)
    """Maximum tokens guessed ahead per sequence and iteration; 0: no speculation."""
    vllm_args: str = Field("", max_length=8192)
    """Arguments of `vllm serve` for the engine vllm, as on a command line."""
    max_unread_bytes: int = Field(64 << 20, ge=1024, le=1 << 40)
    """Maximum bytes of answers that wait in memory: of streams whose clients do not read, beyond it
    such a stream ends; of whole answers until their last token, beyond it they get 429."""
    unread_timeout_s: Seconds = 30.0
    """Maximum time that a stream may stay unread."""

    @model_validator(mode="after")
    def _a_draft_model_drafts(self) -> Self:
        if self.draft_model_uri and not self.max_drafts:
            raise ValueError(
                "HEADROOM_MAX_DRAFTS must be above 0 with HEADROOM_DRAFT_MODEL_URI; got 0: 4 is a "
                "good start"
            )
        return self

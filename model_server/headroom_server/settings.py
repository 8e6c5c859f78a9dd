"""PURE. The server's settings: every key with its limits and default. Durations are in seconds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


def _listed(value: object) -> object:
    return tuple(filter(None, value.replace(",", " ").split())) if isinstance(value, str) else value


def _table(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"must be a JSON object: {error}") from error


def _pair(value: object) -> object:
    return tuple(value.split(":")) if isinstance(value, str) else value


class Group(BaseModel):
    """Base of the groups of settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), use_attribute_docstrings=True
    )


class ModelSettings(Group):
    """Models."""

    model_name: str = Field("model", pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$")
    """Name of the model, if the repository contains a single model without a name."""
    model_uri: str = Field("", max_length=4096)
    """Model repository: file:///path or pvc://claim/path."""
    models: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Models to serve: `name` (its latest version) or `name:version`. Default: the latest version
    of every model."""
    model_control: Literal["none", "explicit"] = "none"
    """explicit: models can be loaded and unloaded at run time; none: only those at start."""
    repository_trusted: bool = False
    """Whether the repository may run code: torch.export and AOTInductor programs, and classes of
    installed modules (`module:Class`)."""

    @field_validator("models")
    @classmethod
    def _distinct(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(models)) != len(models):
            raise ValueError("each model and version must be named once")
        return models


class ListenerSettings(Group):
    """Listeners."""

    host: str = "0.0.0.0"  # noqa: S104 - a server in a pod is reached at the pod's address
    """Address to listen on."""
    port: int = Field(8000, ge=0, le=65_535)
    """HTTP port. 0: the system chooses one, which is logged."""
    grpc_port: int | None = Field(None, ge=0, le=65_535)
    """gRPC port on the same host. Default: no gRPC, which saves 20 MB."""
    max_body_bytes: int = Field(8 * 1024 * 1024, ge=1024, le=1024**3)
    """Maximum size of one request's body, in bytes."""
    max_receiving_bytes: int | None = Field(None, ge=1024, le=1 << 40)
    """Maximum bytes of all requests that are arriving; a client may hold as many as are free.
    Default: four of the largest bodies, at least 32 MiB."""
    max_connections: int = Field(2048, ge=2, le=1_000_000)
    """Maximum open HTTP connections; a client may hold as many as are free."""
    receive_timeout_s: Seconds = 30.0
    """Maximum time from the first to the last byte of a request; slower ones get 408."""
    connection_max_age_s: Seconds = 15.0
    """Mean age at which a connection is closed after a response; varied by up to 25 %."""
    connection_idle_s: Seconds = 120.0
    """Time after which an idle connection is closed. Longer than common clients keep them (Go
    90 s, aiohttp 15 s), so that clients close first."""


class EngineSettings(Group):
    """Engine."""

    engine: Literal["torch", "emulated", "generation", "generation-emulated", "vllm"] = "torch"
    """generation: text by a language model; the default for a Hugging Face folder. vllm: text by
    vLLM, which must be installed. emulated and generation-emulated: sleep instead of computing,
    without a model or a device."""
    model_class: str = Field("", pattern=r"^$|^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """Class to serve as a model without a description: module:Class."""
    devices: Annotated[
        tuple[Annotated[str, Field(pattern=r"^(all|(cuda:)?(0|[1-9]\d{0,2}))$")], ...],
        BeforeValidator(_listed),
        Field(max_length=64),
    ] = ()
    """Devices that serve each model: `0,1` or `cuda:0,cuda:1` (as many emulated ones), or `all`.
    Default: one device."""
    torch_threads: int = Field(1, ge=1, le=1024)
    """Number of CPU threads that torch may use."""
    compile_cache: str = Field("", max_length=4096)
    """Folder for the results of torch.compile; without it every start compiles again."""

    @field_validator("devices")
    @classmethod
    def _distinct_devices(cls, devices: tuple[str, ...]) -> tuple[str, ...]:
        numbers = [device.removeprefix("cuda:") for device in devices]
        if len(set(numbers)) != len(numbers) or (len(numbers) > 1 and "all" in numbers):
            raise ValueError("must be `all`, or distinct numbers")
        return tuple(numbers)


class EmulationSettings(Group):
    """Emulated engine."""

    emulated_fixed_cost_s: SecondsOrNone = 0.006
    """Time per batch, independent of its items, in seconds."""
    emulated_per_item_cost_s: SecondsOrNone = 0.0005
    """Additional time per item, in seconds."""
    emulated_per_token_cost_s: SecondsOrNone = 0.0
    """Additional time per item and unit of its padded length, in seconds."""
    emulated_lengths: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**31)], ...], BeforeValidator(_listed)
    ] = ()
    """Padded lengths, ascending; an item is then a row of any length up to the last."""
    emulated_slowdown: Annotated[tuple[SecondsOrNone, Factor] | None, BeforeValidator(_pair)] = None
    """`30:2`: from 30 s after loading, every batch takes twice as long."""
    emulated_loss: Annotated[
        tuple[Annotated[int, Field(ge=0, le=999)], SecondsOrNone] | None, BeforeValidator(_pair)
    ] = None
    """`1:30`: 30 s after loading, device 1 (counted from 0, as in metrics) is lost."""
    emulated_load_s: SecondsOrNone = 1.0
    """Time to load the model, in seconds."""
    emulated_input_size: int = Field(4, ge=1, le=1_000_000)
    """Numbers per item."""

    @field_validator("emulated_lengths")
    @classmethod
    def _ascending(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if any(a >= b for a, b in pairwise(lengths)):
            raise ValueError("must be ascending, without duplicates")
        return lengths

    @model_validator(mode="after")
    def _an_emulated_batch_takes_time(self) -> Self:
        if self.emulated_fixed_cost_s + self.emulated_per_item_cost_s <= 0:
            raise ValueError(
                "HEADROOM_EMULATED_FIXED_COST_S + HEADROOM_EMULATED_PER_ITEM_COST_S must be above "
                "0; got 0"
            )
        return self


class QueueSettings(Group):
    """Batches and queue."""

    max_batch_size: int = Field(8, ge=1, le=1024)
    """Maximum items per batch, for models whose description does not set it. If it is set, a model
    that generates text has at most as many sequences per iteration."""
    max_waiting: int | None = Field(None, ge=1, le=1_000_000)
    """Maximum items waiting per model. Default: eight full batches per device."""
    max_waiting_bytes: int = Field(1 << 30, ge=1024, le=1 << 40)
    """Maximum bytes waiting per model."""
    max_wait_s: SecondsOrNone = 0.0
    """How long an incomplete batch may wait for more requests, in seconds; 0: not at all."""
    deadline_s: Seconds | None = None
    """Deadline of requests without one, for models without an SLO class `default`."""
    stall_timeout_s: Seconds = 60.0
    """Maximum time of a batch; while one takes longer the server is neither ready nor live."""


class SloClassSettings(Group):
    """Values for the requests of a class that do not set their own."""

    priority: int = Field(5, ge=0, le=9)
    deadline_s: Seconds | None = None
    first_token_deadline_s: Seconds | None = None
    batch: bool = False


SloClassName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")]


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
        BeforeValidator(_table),
        Field(max_length=64),
    ] = None
    """Classes that requests name in `x-slo-class`, as JSON: `{"gold": {"priority": 1, "deadline_s":
    30, "first_token_deadline_s": 1, "batch": false}}`. `interactive`, `batch` (fills only what
    others leave) and, with HEADROOM_DEADLINE_S, `default` exist already."""

    context_tokens: int | None = Field(None, ge=16, le=1 << 24)
    """Maximum tokens of a prompt and its answer. Default: the model's own limit."""
    kv_cache_bytes: int | None = Field(None, ge=1 << 16, le=1 << 44)
    """Memory for keys and values. Default: what the device has left."""
    block_tokens: int = Field(16, ge=1, le=1024)
    """Tokens per block of keys and values."""
    max_sequences: int = Field(64, ge=1, le=4096)
    """Maximum sequences per iteration."""
    max_iteration_tokens: int = Field(512, ge=16, le=1 << 20)
    """Maximum tokens computed per iteration; longer prompts are computed in chunks."""
    max_waiting_requests: int = Field(1024, ge=1, le=1_000_000)
    """Maximum requests that wait for their prompt to be computed; a tenant may wait with as many as
    are free, and requests of the class `batch` fill half."""
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


class CacheSettings(Group):
    """Response cache."""

    cache_bytes: int = Field(0, ge=0, le=1 << 40)
    """Bytes of cached answers per model, unless its description sets it; 0: no cache."""
    cache_ttl_s: Seconds = 60.0
    """Lifetime of a cached answer, in seconds."""
    cache_redis_url: str = Field("", max_length=4096, repr=False)
    """Redis as second level, shared by replicas: redis://, rediss:// or unix://."""
    cache_redis_key: str = Field("", max_length=4096, repr=False)
    """Secret of at least 32 characters, equal in all replicas, that seals what is in Redis."""
    cache_redis_trusted: bool = False
    """Use Redis without key and password: who can write there answers for every model."""
    semantic_cache_url: str = Field("", max_length=4096)
    """Embedding model that finds answers to similar questions, on a model server:
    http://HOST/v1/models/MODEL:predict. Empty: only equal requests are found."""
    semantic_cache_tokenizer: str = Field("", max_length=4096)
    """Folder with the embedding model's tokenizer.json."""
    semantic_cache_threshold: float = Field(0.95, ge=0.5, le=1.0, allow_inf_nan=False)
    """Least cosine of the embeddings of similar questions."""
    semantic_cache_entries: int = Field(10_000, ge=1, le=1_000_000)
    """Maximum answers that are found by similarity; at most HEADROOM_CACHE_BYTES of them, too."""
    feature_cache_bytes: int = Field(0, ge=0, le=1 << 40)
    """Bytes of cached features per model, also in Redis if it is set: of a model that generates
    text, embeddings of questions and tokens of prompts of 16 to 256 KiB; of a class, what its
    `featurize` computes from equal inputs. 0: no cache. Refused for others."""
    feature_cache_ttl_s: Seconds = 600.0
    """Lifetime of a cached feature, in seconds."""


class LifecycleSettings(Group):
    """Warm-up and drain."""

    warmup_requests: int = Field(16, ge=1, le=1_000_000)
    """Minimum number of warm-up requests, over all shapes."""
    warmup_max_latency_s: Seconds = 1.0
    """Maximum p95 of single requests in the self-test, in seconds."""
    warmup_timeout_s: Seconds = 600.0
    """Maximum time from start to ready."""
    drain_delay_s: SecondsOrNone = 2.0
    """How long requests are accepted after SIGTERM, because endpoints take a moment to update."""
    drain_grace_s: Seconds = 60.0
    """How long accepted requests may take to finish after that."""


GROUPS: tuple[type[Group], ...] = (
    ModelSettings,
    ListenerSettings,
    EngineSettings,
    EmulationSettings,
    QueueSettings,
    GenerationSettings,
    CacheSettings,
    LifecycleSettings,
)


class Settings(
    ModelSettings,
    ListenerSettings,
    EngineSettings,
    EmulationSettings,
    QueueSettings,
    GenerationSettings,
    CacheSettings,
    LifecycleSettings,
):
    """Every key with its limits and default."""


def title(group: type[Group]) -> str:
    """Return the heading of a group."""
    return (group.__doc__ or "").removesuffix(".")

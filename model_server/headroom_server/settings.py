"""PURE. The server's configuration: one frozen value from flags, environment, file and defaults.

A flag goes before its variable, a variable before the file, the file before the default:

    --max-batch-size 16      HEADROOM_MAX_BATCH_SIZE=16      max_batch_size = 16

Unknown keys are errors in flags and file. An unknown HEADROOM_* variable is a warning: the
environment is not the server's alone, and a Service named `headroom` puts HEADROOM_SERVICE_HOST
there. Durations are in seconds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

PREFIX = "HEADROOM_"
CONFIG = "config"
"""The file's path: a flag and a variable, and no key of the file."""

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


class InvalidSettingsError(Exception):
    """What was configured does not describe a server; one line per key."""


def _listed(value: object) -> object:
    return tuple(filter(None, value.replace(",", " ").split())) if isinstance(value, str) else value


def _pair(value: object) -> object:
    return tuple(value.split(":")) if isinstance(value, str) else value


class Settings(BaseModel):
    """Every key, its bounds and its default."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), use_attribute_docstrings=True
    )

    model_name: str = Field("model", pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$")
    """The name of the one model, where the repository is one and does not name it."""
    model_uri: str = Field("", max_length=4096)
    """The model repository: file:///path or pvc://claim/path."""
    models: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """What of the repository to serve: `name` (its latest version) or `name:version`; all if none
    is named."""
    model_control: Literal["none", "explicit"] = "none"
    """explicit: models are loaded and unloaded at run time over HTTP; none: those at start stay."""
    repository_trusted: bool = False
    """Whether the repository may run code here: torch.export and AOTInductor programs."""
    host: str = "0.0.0.0"  # noqa: S104 - a server in a pod is reached at the pod's address
    """Where to listen."""
    port: int = Field(8000, ge=0, le=65_535)
    """0 lets the system choose; the log says which."""
    grpc_port: int | None = Field(None, ge=0, le=65_535)
    """Where to listen for gRPC too, on the same host; unset: nowhere, which saves 20 MB."""

    engine: Literal["torch", "emulated"] = "torch"
    """emulated: no model, a device that only spends time."""
    model_class: str = Field("", pattern=r"^$|^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """A model as a class, module:Class, without a description."""
    devices: Annotated[
        tuple[Annotated[str, Field(pattern=r"^(all|(cuda:)?(0|[1-9]\d{0,2}))$")], ...],
        BeforeValidator(_listed),
        Field(max_length=64),
    ] = ()
    """Which devices serve each model: `0,1` or `cuda:0,cuda:1` (of the emulated engine, so many),
    `all`, or one if unset."""
    torch_threads: int = Field(1, ge=1, le=1024)
    """Of torch on the CPU."""
    compile_cache: str = Field("", max_length=4096)
    """A folder in which what torch.compile makes is kept; without it every start compiles anew."""
    emulated_fixed_cost_s: SecondsOrNone = 0.006
    """Of a batch, before its items."""
    emulated_per_item_cost_s: SecondsOrNone = 0.0005
    """That an item adds."""
    emulated_per_token_cost_s: SecondsOrNone = 0.0
    """Seconds that each item adds per unit of its padded length."""
    emulated_lengths: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**31)], ...], BeforeValidator(_listed)
    ] = ()
    """Padded lengths, ascending; with them an item is a row of any length up to the last."""
    emulated_slowdown: Annotated[tuple[SecondsOrNone, Factor] | None, BeforeValidator(_pair)] = None
    """`30:2`: from 30 s after loading, every batch takes twice as long."""
    emulated_loss: Annotated[
        tuple[Annotated[int, Field(ge=0, le=999)], SecondsOrNone] | None, BeforeValidator(_pair)
    ] = None
    """`1:30`: 30 s after loading, device 1 is lost, counted from 0 as in metrics."""
    emulated_load_s: SecondsOrNone = 1.0
    """That loading takes."""
    emulated_input_size: int = Field(4, ge=1, le=1_000_000)
    """Numbers in an item."""

    max_batch_size: int = Field(8, ge=1, le=1024)
    """Items, where a model's description does not say it."""
    max_waiting: int | None = Field(None, ge=1, le=1_000_000)
    """Items that may wait for one model; eight full batches per device if unset."""
    max_waiting_bytes: int = Field(1 << 30, ge=1024, le=1 << 40)
    """That may wait for one model."""
    max_wait_s: SecondsOrNone = 0.0
    """For which a batch that is not full is held for company; 0: it never is."""
    deadline_s: Seconds | None = None
    """Of requests that name none, of models whose description has no class `default`."""
    max_body_bytes: int = Field(8 * 1024 * 1024, ge=1024, le=1024**3)
    """Of one request."""
    cache_bytes: int = Field(0, ge=0, le=1 << 40)
    """Of answers kept in memory, for each model whose description does not say it; 0: none is."""
    cache_ttl_s: Seconds = 60.0
    """For so long a kept answer is given."""
    cache_redis_url: str = Field("", max_length=4096, repr=False)
    """Redis as a second level, which replicas share: redis://, rediss:// or unix://."""
    stall_timeout_s: Seconds = 60.0
    """A batch that takes longer hangs: the server is neither ready nor live."""

    warmup_requests: int = Field(16, ge=1, le=1_000_000)
    """At least, over all warmed shapes."""
    warmup_max_latency_s: Seconds = 1.0
    """The self-test's p95 of single requests is at most this."""
    warmup_timeout_s: Seconds = 600.0
    """From start to ready."""

    drain_delay_s: SecondsOrNone = 2.0
    """After SIGTERM, requests are accepted for this long: endpoints take a moment to catch up."""
    drain_grace_s: Seconds = 60.0
    """Then what was accepted is finished within this."""
    receive_timeout_s: Seconds = 30.0
    """From the first byte of a request to its last; a slower one is answered 408."""
    connection_max_age_s: Seconds = 15.0
    """Mean age at which a connection is closed after an answer; a quarter more or less each."""
    connection_idle_s: Seconds = 120.0
    """Above what common clients keep (Go 90 s, aiohttp 15 s), so that they close first."""

    @field_validator("models")
    @classmethod
    def _names(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(models)) != len(models):
            raise ValueError("each model and version once")
        return models

    @field_validator("devices")
    @classmethod
    def _each_once(cls, devices: tuple[str, ...]) -> tuple[str, ...]:
        numbers = [device.removeprefix("cuda:") for device in devices]
        if len(set(numbers)) != len(numbers) or (len(numbers) > 1 and "all" in numbers):
            raise ValueError("`all`, or numbers, each once")
        return tuple(numbers)

    @field_validator("emulated_lengths")
    @classmethod
    def _ascending(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if any(a >= b for a, b in pairwise(lengths)):
            raise ValueError("ascending, each once")
        return lengths

    @model_validator(mode="after")
    def _an_emulated_batch_takes_time(self) -> Self:
        if self.emulated_fixed_cost_s + self.emulated_per_item_cost_s <= 0:
            raise ValueError(
                "HEADROOM_EMULATED_FIXED_COST_S + HEADROOM_EMULATED_PER_ITEM_COST_S: above 0; got 0"
            )
        return self


class Layer(NamedTuple):
    """Values by key, and how a key is called where they come from."""

    called: Callable[[str], str]
    values: Mapping[str, object]


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.upper()


def flag(key: str) -> str:
    """The flag of a key."""
    return "--" + key.replace("_", "-")


def from_flags(given: Mapping[str, object]) -> Layer:
    """Flags by key; those that were not given are absent."""
    return Layer(flag, {key: value for key, value in given.items() if key != CONFIG})


def from_environment(environment: Mapping[str, str]) -> Layer:
    """Variables that have a meaning here, in any case of letters."""
    said = {name.upper(): value for name, value in environment.items()}
    known = {key: variable(key) for key in Settings.model_fields}
    return Layer(variable, {key: said[name] for key, name in known.items() if name in said})


def from_file(data: bytes, name: str) -> Layer:
    """Keys of a TOML file.

    Raises:
        InvalidSettingsError: where it is no TOML.
    """
    try:
        values = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidSettingsError(f"{name}: {error}") from error
    return Layer(lambda key: f"{name}: {key}", values)


def merged(layers: Sequence[Layer]) -> Settings:
    """One value from layers, the strongest first.

    Raises:
        InvalidSettingsError: naming each wrong key as its layer calls it, the rule and the value.
    """
    values: dict[str, object] = {}
    called: dict[str, str] = {}
    for layer in reversed(layers):
        values |= layer.values
        called |= {key: layer.called(key) for key in layer.values}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        lines = [_line(problem, called) for problem in error.errors(include_url=False)]
        raise InvalidSettingsError("\n".join(lines)) from error


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """HEADROOM_* variables that mean nothing here: most often a misspelt one."""
    known = {variable(key) for key in (*Settings.model_fields, CONFIG)}
    return sorted(n for n in environment if n.upper().startswith(PREFIX) and n.upper() not in known)


def _line(problem: Any, called: Mapping[str, str]) -> str:
    rule = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return rule
    key = called[str(problem["loc"][0])]
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown; is it misspelt? `headroom-server serve --help` lists all"
    return f"{key}: {rule}; got {problem['input']!r:.200}"

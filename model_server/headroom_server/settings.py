"""The server's configuration, read once from HEADROOM_* variables. Durations are in seconds."""

from __future__ import annotations

import os
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "HEADROOM_"

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class InvalidSettingsError(Exception):
    """The environment does not describe a server; one line per variable."""


class Settings(BaseSettings):
    """Every variable, its bounds and its default."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, protected_namespaces=())

    model_name: str = Field("model", pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$")
    model_uri: str = Field("", max_length=4096)
    host: str = "0.0.0.0"  # noqa: S104 - a server in a pod is reached at the pod's address
    port: int = Field(8000, ge=0, le=65_535)
    """0 lets the system choose; the log says which."""

    engine: Literal["torch", "emulated"] = "torch"
    model_class: str = Field("", pattern=r"^$|^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    torch_threads: int = Field(1, ge=1, le=1024)
    emulated_fixed_cost_s: SecondsOrNone = 0.006
    emulated_per_item_cost_s: SecondsOrNone = 0.0005
    emulated_load_s: SecondsOrNone = 1.0
    emulated_input_size: int = Field(4, ge=1, le=1_000_000)

    max_batch_size: int = Field(8, ge=1, le=1024)
    max_waiting: int | None = Field(None, ge=1, le=1_000_000)
    max_body_bytes: int = Field(8 * 1024 * 1024, ge=1024, le=1024**3)
    stall_timeout_s: Seconds = 60.0

    warmup_requests: int = Field(16, ge=1, le=1_000_000)
    warmup_max_latency_s: Seconds = 1.0
    warmup_timeout_s: Seconds = 600.0

    drain_delay_s: SecondsOrNone = 2.0
    drain_grace_s: Seconds = 60.0
    receive_timeout_s: Seconds = 30.0
    """From the first byte of a request to its last; a slower one is answered 408."""
    connection_max_age_s: Seconds = 15.0
    """Mean age at which a connection is closed after an answer; a quarter more or less each."""
    connection_idle_s: Seconds = 120.0
    """Above what common clients keep (Go 90 s, aiohttp 15 s), so that they close first."""

    @model_validator(mode="after")
    def _an_emulated_batch_takes_time(self) -> Self:
        if self.emulated_fixed_cost_s + self.emulated_per_item_cost_s <= 0:
            raise ValueError(
                "HEADROOM_EMULATED_FIXED_COST_S + HEADROOM_EMULATED_PER_ITEM_COST_S: above 0; got 0"
            )
        return self

    @property
    def waiting_bound(self) -> int:
        """Items that may wait: as set, else eight full batches."""
        return self.max_waiting or 8 * self.max_batch_size


def load() -> Settings:
    """Read the environment.

    Raises:
        InvalidSettingsError: naming each wrong variable, the rule and the value.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise InvalidSettingsError(
            "\n".join(_line(problem) for problem in error.errors())
        ) from error


def unknown_variables() -> list[str]:
    """HEADROOM_* variables that mean nothing here: most often a misspelt one."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    return sorted(n for n in os.environ if n.upper().startswith(PREFIX) and n.upper() not in known)


def _line(problem: object) -> str:
    assert isinstance(problem, dict)
    if not problem["loc"]:
        return str(problem["msg"])
    variable = PREFIX + str(problem["loc"][0]).upper()
    return f"{variable}: {problem['msg']}; got {problem['input']!r}"

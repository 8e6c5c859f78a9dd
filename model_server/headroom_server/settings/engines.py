"""Settings: what computes, and on which devices. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from headroom_server.rule_words import text_form
from headroom_server.settings.fields import Group, listed

_CLASS = text_form(r"|[A-Za-z_][\w.]*:[A-Za-z_]\w*", "must be module:Class, such as ranker:Ranker")
_DEVICE = text_form(
    r"all|(cuda:)?(0|[1-9]\d{0,2})", "must be `all`, or numbers such as 0 or cuda:0"
)


class EngineSettings(Group):
    """Engine."""

    engine: Literal["torch", "emulated", "generation", "generation-emulated", "vllm"] = "torch"
    """generation: text by a language model; the default for a Hugging Face folder. vllm: text by
    vLLM, which must be installed. emulated and generation-emulated: sleep instead of computing,
    without a model or a device."""
    model_class: Annotated[str, _CLASS] = ""
    """Class to serve as a model without a description: module:Class."""
    devices: Annotated[
        tuple[Annotated[str, _DEVICE], ...],
        BeforeValidator(listed),
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

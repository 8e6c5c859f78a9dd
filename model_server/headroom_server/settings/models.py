"""Settings: which models are served. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from headroom_server.rule_words import text_form
from headroom_server.settings.fields import Group, listed

_NAME = text_form(
    "[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?",
    "must be a name of letters, digits, ., _ and -, such as resnet50",
)


class ModelSettings(Group):
    """Models."""

    model_name: Annotated[str, _NAME] = "model"
    """Name of the model, if the repository contains a single model without a name."""
    model_uri: str = Field("", max_length=4096)
    """Model repository: file:///path or pvc://claim/path."""
    models: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
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

"""Checks which settings apply to generated text, and reads the SLO classes that they name."""

from __future__ import annotations

from headroom_server.engine import LoadError
from headroom_server.protocols.request_options import (
    BATCH_CLASS,
    DEFAULT_CLASS,
    SloClass,
    SloClasses,
)
from headroom_server.settings import Settings

LOADS_NO_WEIGHTS = {
    "generation-emulated": "an emulated model has no weights; remove it",
    "vllm": "give vLLM's own argument in HEADROOM_VLLM_ARGS",
}
"""Engines whose weights this server does not load; what to do instead of setting their form."""


def check_applicable(settings: Settings) -> None:
    """Check that no setting is given that would have no effect on generated text.

    Raises:
        LoadError: there is one; it says what to do instead.
    """
    remedy = LOADS_NO_WEIGHTS.get(settings.engine, "")
    wrong = [
        (len(settings.devices) > 1, "DEVICES", "name one device", "run a replica per device"),
        (settings.model_class, "MODEL_CLASS", "be empty", "HEADROOM_MODEL_URI names the model"),
        (settings.models, "MODELS", "be empty", "HEADROOM_MODEL_URI names the only model"),
        (
            settings.model_control == "explicit",
            "MODEL_CONTROL",
            "be none",
            "restart to load others",
        ),
        (
            settings.engine == "vllm" and "max_batch_size" in settings.model_fields_set,
            "MAX_BATCH_SIZE",
            "be unset",
            "give --max-num-seqs in HEADROOM_VLLM_ARGS",
        ),
        (remedy and settings.devices, "DEVICES", "be unset", remedy),
        (remedy and settings.dtype, "DTYPE", "be unset", remedy),
        (remedy and settings.int8_weights, "INT8_WEIGHTS", "be unset", remedy),
        (remedy and not settings.decode_graphs, "DECODE_GRAPHS", "be unset", remedy),
        (remedy and settings.draft_model_uri, "DRAFT_MODEL_URI", "be unset", remedy),
    ]
    for given, key, rule, instead in wrong:
        if given:
            value = getattr(settings, key.lower())
            shown = ",".join(value) if isinstance(value, tuple) else value
            raise LoadError(
                f"HEADROOM_{key} must {rule} with HEADROOM_ENGINE={settings.engine}; got "
                f"{shown!s:.200}: {instead}"
            )


def classes_of(settings: Settings) -> SloClasses:
    """Return the classes that requests may name."""
    usual = SloClass(deadline_s=settings.deadline_s)
    classes = {"interactive": usual, BATCH_CLASS: SloClass(batch=True)}
    if settings.deadline_s is not None:
        classes[DEFAULT_CLASS] = usual
    for name, given in (settings.slo_classes or {}).items():
        classes[name] = SloClass(**given.model_dump())
    return classes

"""`model.toml`, the description of one version of a model. Pure.

    engine = "torch"                     # or "emulated"
    architecture = "encoder"             # registered, or "module:Class"; not for a program
    format = "safetensors"               # or "export", "aotinductor"
    weights = "model.safetensors"        # next to this file
    sha256 = "9f86d0..."                 # of the weights; required for a program
    max_batch_size = 32
    batches = [1, 2, 4, 8, 16, 32]       # sizes that are warmed and executed; default: every size
    lengths = [64, 128, 512]             # of the dimension -1
    compile = false                      # torch.compile

    [parameters]                         # of the architecture
    width = 256

    [[inputs]]                           # required for a program; otherwise compared with the model
    name = "tokens"
    datatype = "INT64"                   # BYTES (strings) only with a class
    shape = [-1]                         # of one item
    minimum = 0                          # values outside are refused before they are executed
    maximum = 30521

    [[outputs]]
    name = "score"
    datatype = "FP32"

    [mask]                               # additional input made by the server: 1 data, 0 padding
    name = "mask"
    datatype = "BOOL"

    [classes.interactive]                # SLO classes, selected by x-slo-class
    priority = 1                         # 0 most urgent .. 9
    deadline_s = 0.1

    [cache]                              # of answers; default: the settings
    bytes = 268435456                    # 0: no cache
    ttl_s = 60

    [[warm_up]]                          # samples: one item each, executed before ready
    inputs = { tokens = [101, 7592, 102] }

    [emulated]                           # with engine = "emulated": t(b) = fixed + per_item * b
    fixed_cost_s = 0.006
    per_token_cost_s = 0.0               # times padded length, with lengths

Only `architecture` is required; for a program `weights`, `inputs`, `outputs` and `sha256`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from headroom_server.protocols.request_options import SloClass, SloClasses
from headroom_server.repository.formats import Format, check_weights_name
from headroom_server.repository.tables import (
    CacheFields,
    Emulated,
    Mask,
    Sample,
    SloClassFields,
    Table,
    Tensor,
    Whole,
    ascending,
    nothing,
    read_only,
)
from headroom_server.rule_words import text_form
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec

_ARCHITECTURE = text_form(
    "[A-Za-z_][A-Za-z0-9_.-]*(:[A-Za-z_][A-Za-z0-9_]*)?",
    "must be a registered architecture or module:Class",
)


class Description(Table):
    """One version of a model; the module's docstring shows every field."""

    engine: Literal["torch", "emulated"] = "torch"
    architecture: Annotated[str, Field(max_length=256), _ARCHITECTURE] | None = None
    parameters: Annotated[Mapping[str, Any], AfterValidator(read_only)] = Field(
        default_factory=nothing
    )
    format: Format = Format.SAFETENSORS
    weights: str = Field("", max_length=255, strict=True)
    sha256: Annotated[str, text_form("[0-9a-f]{64}", "must be 64 digits of 0-9 and a-f")] | None = (
        None
    )
    max_batch_size: int | None = Field(None, ge=1, le=1024, strict=True)
    batches: Annotated[
        tuple[Annotated[Whole, Field(ge=1, le=1024)], ...], AfterValidator(ascending)
    ] = ()
    lengths: Annotated[
        tuple[Annotated[Whole, Field(ge=1, le=2**31)], ...], AfterValidator(ascending)
    ] = ()
    compile: bool = Field(False, strict=True)
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    mask: Mask | None = None
    classes: Annotated[
        Mapping[
            Annotated[
                str,
                text_form("[A-Za-z0-9._-]{1,64}", "must be a name of letters, digits, ., _ and -"),
            ],
            SloClassFields,
        ],
        AfterValidator(read_only),
    ] = Field(default_factory=nothing)
    cache: CacheFields | None = None
    warm_up: tuple[Sample, ...] = Field((), max_length=1000)
    emulated: Emulated | None = None

    @property
    def weights_name(self) -> str:
        """The weights file, as named or by its format's default."""
        return self.weights or f"model{self.format.suffix}"

    @property
    def is_class(self) -> bool:
        """Whether a user's class computes, and loads its own weights."""
        return self.architecture is not None and ":" in self.architecture

    @property
    def slo_classes(self) -> SloClasses:
        """The SLO classes by name."""
        return {name: SloClass(one.priority, one.deadline_s) for name, one in self.classes.items()}

    @property
    def declared(self) -> Signature | None:
        """The declared inputs and outputs; None if the model itself defines them."""
        if not self.inputs:
            return None
        mask = None
        if self.mask is not None:
            mask = TensorSpec(self.mask.name, self.mask.datatype, (DYNAMIC,))
        return Signature(
            tuple(one.spec() for one in self.inputs),
            tuple(one.spec() for one in self.outputs),
            lengths=self.lengths,
            batches=self.batches,
            mask=mask,
        )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for broken in _contradictions(self):
            raise ValueError(broken)
        if self.weights or self.engine == "torch":
            try:
                check_weights_name(self.weights_name, self.format)
            except ValueError as error:
                raise ValueError(f"weights {error}") from error
        _ = self.declared  # shapes, lengths, batches and names agree
        return self


def _contradictions(one: Description) -> Iterable[str]:
    """Yield contradictions between fields."""
    if one.engine == "emulated":
        idle = ("architecture", "weights", "sha256", "parameters", "inputs", "outputs", "mask")
        for field in idle:
            if getattr(one, field):
                yield (
                    f"{field} must be omitted for an emulated engine; remove it, or set engine "
                    "= 'torch'"
                )
        if one.compile or one.lengths or one.format.is_program:
            yield "compile, lengths and format must be omitted for an emulated engine"
    elif one.emulated is not None:
        yield "emulated must be omitted unless engine = 'emulated'"
    elif one.format.is_program:
        for field in ("inputs", "outputs", "sha256"):
            if not getattr(one, field):
                yield f"{field} is required with format = {one.format.value!r}"
        for field in ("architecture", "parameters", "compile"):
            if getattr(one, field):
                yield f"{field} must be omitted: a program contains its own"
    elif one.architecture is None:
        yield "architecture is required: a registered name, or module:Class"
    if not one.is_class and any(tensor.spec().is_strings for tensor in (*one.inputs, *one.outputs)):
        yield (
            "datatype must not be BYTES unless architecture = 'module:Class'; nothing else "
            "accepts strings"
        )
    if bool(one.inputs) != bool(one.outputs):
        yield "inputs and outputs must both be set, or neither"
    if one.mask and not one.inputs:
        yield "mask requires inputs, one of them with the dimension -1"
    if one.batches and one.max_batch_size not in (None, one.batches[-1]):
        yield (
            f"max_batch_size must be the largest of batches, {one.batches[-1]}, or omitted; got "
            f"{one.max_batch_size}"
        )

"""One torch device: a CUDA device, or the CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from headroom_server.engine import LoadError, Staged, Work
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine import compilation
from headroom_server.torch_engine.collecting import Slot, Slots, collect
from headroom_server.torch_engine.dealing import deal
from headroom_server.torch_engine.errors import translated
from headroom_server.torch_engine.featurizing import Featurizer, featurizer_of
from headroom_server.torch_engine.loading import Load, Loaded
from headroom_server.torch_engine.transfers import Transfers, transfers_of
from headroom_server.typed_arrays import Numbers


class Prepared(NamedTuple):
    """A collected batch, its preprocessed form, and the event after its copies."""

    slot: Slot
    rows: int
    batch: Any
    mark: Any


class TorchEngine:
    """Executes a TorchModel."""

    name = "torch"
    emulated = False

    def __init__(
        self,
        load: Load,
        *,
        threads: int,
        compile_model: bool = False,
        compile_cache: Path | None = None,
        device: torch.device | None = None,
        clock: Callable[[], float] = time.monotonic,
        needs_features: bool = False,
    ) -> None:
        """Use CUDA if available, unless a `device` is given.

        `needs_features`: a model without features is not loaded.
        `compile_model`: compile even if the model does not request it; `compile_cache`: its folder.
        """
        self._load = load
        self._threads = threads
        self._compile_model = compile_model
        self._compile_cache = compile_cache
        self._clock = clock
        usual = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = device or torch.device(usual)
        self.device = (
            torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else "cpu"
        )
        self.compiles = False
        self._loaded: Loaded | None = None
        self._needs_features = needs_features
        self._featurizer: Featurizer | None = None
        self._slots: Slots | None = None
        self._transfers: Transfers = transfers_of(self._device)
        self._forward: Callable[[Any], Any] = torch.nn.Identity()

    def load(self) -> Signature:
        """Load the model to the device.

        Raises:
            LoadError: the class or the files are invalid.
        """
        torch.set_num_threads(self._threads)
        if self._device.index is not None:
            # of this thread: what the model creates without naming a device is created on this one
            torch.cuda.set_device(self._device)
        self._loaded = model, signature = self._load(self._device)
        self._forward = model.forward
        self._featurizer = featurizer_of(model, signature, required=self._needs_features)
        self._slots = Slots(self._collected(signature), self._transfers.memory)
        self.compiles = self._compile_model or getattr(model, "wants_compile", False) is True
        return signature

    def compile(self) -> str:
        """Compile the model, shape by shape, if that is possible here."""
        missing = compilation.obstacle(self._device.type)
        if missing is not None:
            return f"not compiled: {missing}"
        model, signature = self._model()
        kept = "nothing is kept"
        if self._compile_cache is not None:
            digest = compilation.digest(model, signature)
            folder = compilation.cache_folder(self._compile_cache, digest, self.device)
            try:
                warm = compilation.use_cache(folder, os.environ)
            except OSError as error:
                raise LoadError(f"HEADROOM_COMPILE_CACHE: {error}") from error
            kept = f"{folder.name} {'was reused' if warm else 'is new'}"
        self._forward = compilation.compiled(model.forward, signature, self._device.type)
        return f"torch.compile; {kept}"

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        """Collect, pad, preprocess, and begin to copy."""
        model, signature = self._model()
        rows = signature.padded_batch(sum(work.items for work in batch))
        if ahead is not None and ahead.length == length and _same(ahead.batch, batch):
            return ahead
        began_s = self._clock()
        works = batch
        if self._featurizer is not None:
            works = [self._featurizer.featured(work) for work in batch]
        featurize_s = self._clock() - began_s
        slot = self._slot(rows, length, ahead)
        collect(slot, self._collected(signature), works, rows)
        began_s = self._clock()
        with translated(), torch.inference_mode(), self._transfers.sending():
            prepared = model.preprocess(slot.batch(rows))
            mark = self._transfers.sent()
        preprocess_s = self._clock() - began_s + featurize_s
        return Staged(batch, length, Prepared(slot, rows, prepared, mark), preprocess_s)

    def execute(self, staged: Staged) -> Any:
        """Run one forward pass, and copy its results to the host."""
        prepared: Prepared = staged.prepared
        with translated(), torch.inference_mode():
            self._transfers.receive(prepared.mark)
            return self._transfers.fetch(self._forward(prepared.batch))

    def finish(self, staged: Staged, result: Any) -> Sequence[Mapping[str, Numbers]]:
        """Postprocess, and split the rows by request."""
        model, signature = self._model()
        prepared: Prepared = staged.prepared
        with translated(), torch.inference_mode():
            outputs = model.postprocess(result)
            columns = {
                spec.name: deal(
                    spec, outputs, staged.batch, rows=prepared.rows, length=staged.length
                )
                for spec in signature.outputs
            }
        assert self._slots is not None
        self._slots.give(prepared.slot)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @property
    def features(self) -> tuple[TensorSpec, ...]:
        """Features that the loaded model computes from a request's inputs; () if it has none."""
        return () if self._featurizer is None else self._featurizer.signature.inputs

    def featured(self, work: Work) -> Work:
        """Return a request with its features in place of its inputs, on any thread."""
        assert self._featurizer is not None, "the model has features"
        return self._featurizer.featured(work)

    def unload(self) -> None:
        """Release weights and buffers, so that other models of the process have the memory."""
        self._loaded = self._slots = self._featurizer = None
        self._forward = torch.nn.Identity()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _model(self) -> Loaded:
        assert self._loaded is not None, "load comes first"
        return self._loaded

    def _collected(self, signature: Signature) -> Signature:
        """Return the signature of what a batch is collected from."""
        return signature if self._featurizer is None else self._featurizer.signature

    def _slot(self, rows: int, length: int, ahead: Staged | None) -> Slot:
        assert self._slots is not None
        if ahead is not None:
            slot: Slot = ahead.prepared.slot
            if slot.length == length and slot.rows >= rows:
                return slot
            self._slots.give(slot)
        return self._slots.take(rows, length)


def _same(one: Sequence[Work], other: Sequence[Work]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))

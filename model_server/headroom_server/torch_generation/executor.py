"""Our executor: a decoder from a Hugging Face folder on a torch device."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path

import torch

from headroom_server.generation.values import (
    GenerationLimits,
    Iteration,
    IterationResult,
    SequenceView,
)
from headroom_server.torch_engine.errors import translated
from headroom_server.torch_generation.drafting import DraftModel
from headroom_server.torch_generation.forward.decode_graphs import DecodeGraphs, obstacle
from headroom_server.torch_generation.forward.decode_kernels import Kernels, cuda_kernels
from headroom_server.torch_generation.forward.decoder import Decoder
from headroom_server.torch_generation.loading import ExecutorOptions, load_decoder, load_drafts
from headroom_server.torch_generation.next_token.adjustments import KeptAdjustments
from headroom_server.torch_generation.next_token.sampling import NOT_FINITE, sample

log = logging.getLogger("headroom_server")

DEFAULTS = ExecutorOptions()


class TorchExecutor:
    """Computes iterations on CUDA if there is a device, else on the CPU."""

    def __init__(
        self,
        folder: Path,
        options: ExecutorOptions = DEFAULTS,
        *,
        draft_folder: Path | None = None,
        device: torch.device | None = None,
        process_seed: int | None = None,
        kernels: Kernels | None = None,
    ) -> None:
        """Prepare for the model in `folder`, and the model that drafts for it, if there is one.

        `kernels` record decodes; None: those of the device, if it has any.
        `process_seed` decides the draws of requests without a seed; None: a random one.
        """
        self._folder = folder
        self._options = options
        self._draft_folder = draft_folder
        self._device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.device = (
            torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else "cpu"
        )
        self._process_seed = secrets.randbits(64) if process_seed is None else process_seed
        self._adjustments = KeptAdjustments()
        self._decoder: Decoder | None = None
        self._limits: GenerationLimits | None = None
        self._drafts: DraftModel | None = None
        self._kernels = kernels
        self.graphs: DecodeGraphs | None = None

    @property
    def limits(self) -> GenerationLimits:
        """Limits that `load` returned."""
        assert self._limits is not None, "load comes first"
        return self._limits

    def load(self) -> GenerationLimits:
        """Read the weights and reserve the memory of keys and values.

        Raises:
            LoadError: the folder, its model or the memory is not what it must be.
        """
        if self._options.threads is not None and self._device.type == "cpu":
            torch.set_num_threads(self._options.threads)
        with translated(), torch.inference_mode():
            options, device = self._options, self._device
            if self._draft_folder is not None:
                self._drafts = load_drafts(self._draft_folder, self._folder, options, device)
            self._decoder, self._limits = load_decoder(
                self._folder, options, device, options.kv_bytes
            )
        self.graphs = self._recording(self._decoder, self._limits)
        return self._limits

    def _recording(self, decoder: Decoder, limits: GenerationLimits) -> DecodeGraphs | None:
        if not self._options.decode_graphs:
            return None
        kernels, shape = self._kernels, decoder.shape
        if kernels is None:
            missing = obstacle(shape, limits.block_tokens, self._device)
            if missing is not None:
                log.info("decodes are not recorded: %s", missing)
                return None
            programs = len(limits.decode_sizes) * len(set(shape.windows))
            kernels = cuda_kernels(programs, self._device)
        return DecodeGraphs(decoder, limits, kernels)

    def execute(self, iteration: Iteration) -> IterationResult:
        """Compute an iteration in one forward pass, and choose its tokens.

        Raises:
            DeviceLostError: nothing can be executed any more.
            OutOfMemoryError: a smaller iteration may succeed.
            FloatingPointError: a sequence's numbers are not finite.
        """
        decoder = self._decoder
        assert decoder is not None, "load comes first"
        chunks = iteration.chunks
        with translated(), torch.inference_mode():
            logits = None if self.graphs is None else self.graphs.logits(chunks)
            if logits is None:
                logits, finite = decoder.forward(chunks)
                if not finite:
                    raise FloatingPointError(NOT_FINITE)
            return IterationResult(sample(logits, chunks, self._process_seed, self._adjustments))

    def draft(self, sequences: Sequence[SequenceView], count: int) -> Sequence[Sequence[int]]:
        """Propose the draft model's most probable tokens; none without a draft model."""
        if self._drafts is None:
            return [() for _ in sequences]
        with translated(), torch.inference_mode():
            return self._drafts.propose(sequences, count)

    def forget(self, key: int) -> None:
        """Free what adjustments and the draft model keep of a request; draws have no state."""
        self._adjustments.forget(key)
        if self._drafts is not None:
            self._drafts.forget(key)

    def unload(self) -> None:
        """Release the weights and the memory of keys and values."""
        self._decoder = self._drafts = self.graphs = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

"""A sentence-transformers model of the BERT family as a model of the server: mean of its tokens.

HEADROOM_MODEL_CLASS=semantic_cache.sentence_model:SentenceModel; HEADROOM_MODEL_URI is its folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel

from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

LENGTHS = (16, 32, 64, 128)


class SentenceModel:
    """Token numbers in, a vector of length 1 out."""

    wants_compile = False

    def __init__(self) -> None:
        self._model: Any = None
        self.signature = _signature(1)

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Load the weights."""
        assert directory is not None, "HEADROOM_MODEL_URI is the model's folder"
        self._model = AutoModel.from_pretrained(directory).to(device).eval()
        self.signature = _signature(self._model.config.hidden_size)

    def preprocess(self, inputs: Any) -> Any:
        """Return token numbers and the attention mask."""
        return inputs["ids"], inputs["mask"]

    def forward(self, batch: Any) -> Any:
        """Return the mean of the tokens' states."""
        ids, mask = batch
        states = self._model(ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(mean)

    def postprocess(self, result: Any) -> Any:
        """Return the vectors."""
        return {"embedding": result}


def _signature(size: int) -> Signature:
    return Signature(
        inputs=(TensorSpec("ids", "INT64", (-1,)),),
        outputs=(TensorSpec("embedding", "FP32", (size,)),),
        lengths=LENGTHS,
        mask=TensorSpec("mask", "INT64", (-1,)),
    )

"""Loads a model's tokenizer, chat template and grammars from its Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

from headroom_server.generation.text.chat_template import load_chat_template
from headroom_server.generation.text.constraint_trial import QUICK, ConstraintTrial
from headroom_server.generation.text.model_text import Grammars, ModelText
from headroom_server.generation.text.tokenizer_folder import load_tokenizer
from headroom_server.generation.text.tool_calls import ToolStyle


def load_text(folder: Path) -> ModelText:
    """Load tokenizer and chat template.

    Raises:
        LoadError: a file is missing or invalid.
    """
    chat = load_chat_template(folder)
    tokenizer = load_tokenizer(folder, chat)
    return ModelText(
        tokenizer=tokenizer,
        chat=chat,
        tool_style=ToolStyle.TAGGED if chat is None else chat.tool_style,
        grammars=_grammars(tokenizer.library.to_str(), tokenizer.eos_tokens),
    )


def _grammars(tokenizer_json: str, eos_tokens: frozenset[int]) -> Grammars | None:
    try:
        from headroom_server.generation.text.grammar import GuidanceGrammars  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    quick = ConstraintTrial(tokenizer_json, eos_tokens, QUICK)
    slow = ConstraintTrial(tokenizer_json, eos_tokens)
    return GuidanceGrammars(tokenizer_json, eos_tokens, quick=quick, slow=slow)

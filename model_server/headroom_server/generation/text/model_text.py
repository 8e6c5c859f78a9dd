"""Everything about a model's text: its tokenizer, chat format, style of tool calls, grammars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headroom_server.generation.text.chat import ChatFormat
from headroom_server.generation.text.constraint_owner import UNNAMED, Owner
from headroom_server.generation.text.tokenizer import Tokenizer
from headroom_server.generation.text.tool_calls import ToolStyle
from headroom_server.generation.token_grammar import TokenGrammar


class Grammars(Protocol):
    """Compiles constraints into grammars of tokens."""

    def known(self, kind: str, text: str) -> TokenGrammar | None:
        """Return a new grammar of a constraint that is compiled; None: it is not, or no longer.

        Takes microseconds, also while another thread compiles.
        """

    def compile(
        self, kind: str, text: str, *, quick: bool = False, owner: Owner = UNNAMED
    ) -> TokenGrammar:
        """Return a new grammar: `json_schema`, `json_object`, `regex`, `grammar` or `choice`.

        Its memory is its owner's. `quick`: give up one that takes more than ordinary ones. Calls of
        both kinds wait for none of the other.

        Raises:
            TooComplexError: compiling takes too much time or memory.
            ValueError: the constraint is invalid; the message is for clients.
            QueueFullError: the constraints in use leave too little memory for this owner.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    """Encoding and decoding of one model's text."""

    tokenizer: Tokenizer
    chat: ChatFormat | None = None
    """None: the model has no chat template, and serves completions only."""
    tool_style: ToolStyle = ToolStyle.TAGGED
    grammars: Grammars | None = None
    """None: answers cannot be constrained."""

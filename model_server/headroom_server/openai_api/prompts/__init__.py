"""Prompts become tokens, constraints become grammars: in turns of the clients, within bounds."""

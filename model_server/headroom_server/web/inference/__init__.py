"""Inference over HTTP: the fast path without ASGI, and what it shares with requests over ASGI."""

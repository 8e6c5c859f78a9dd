"""Limits how far and how fast the replica count may move, with the history that this needs."""

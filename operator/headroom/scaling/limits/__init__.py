"""Limits how far and how fast the replica count may move, and remembers what that depends on."""

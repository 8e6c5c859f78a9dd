"""Sharing of accelerators between services: by priority, and within the operator's caps."""

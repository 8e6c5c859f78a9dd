"""Adapters: one module per outside system.

Each is the only importer of its client library and implements a port structurally.
"""

"""Adapters: a package per outside system, and their common modules.

Each is the only importer of its client library and implements a port structurally.
"""

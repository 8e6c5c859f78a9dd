"""Adapters: a package per outside system, and what they share.

Each is the only importer of its client library and implements a port structurally.
"""

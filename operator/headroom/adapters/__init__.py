"""One module per outside system.

Each is the only importer of its client library and fits a port by structure.
"""

"""Envoy's bootstrap configuration, until the operator's first snapshot."""

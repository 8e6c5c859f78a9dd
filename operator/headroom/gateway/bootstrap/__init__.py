"""Envoy's bootstrap configuration: what a gateway knows before the operator's first snapshot."""

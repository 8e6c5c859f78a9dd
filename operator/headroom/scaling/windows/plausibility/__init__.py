"""Counters that cannot be true, compared with other replicas and with earlier pages. Pure."""

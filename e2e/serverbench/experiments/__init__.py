"""Experiments on a server: rates, knees, lengths of texts, faults, a soak."""

"""Learns a generating service from its counters, from tick to tick.

- cost of an iteration: `iteration_cost/`, identification
- lengths: `request_lengths/`
- tails: tail_correction
- from tick to tick: learned, learned_checkpoint, model_inputs, seen_load
"""

"""Sizes services that generate tokens: by engine time, memory, seats and the tails of promises.

- counters: token_counters, token_table, spread, intervals
- cost of an engine: sums, least_squares, estimate, ledger, experts, identification
- lengths: lengths, length_increase, length_moments, length_steps, shared_memory
- one replica: work, rates, occupancy, seats, prompt_bursts, first_token, output_token, replica
- all replicas: capacity, fleet, surge, overload, admission
- promises: promises, tail_correction, classes, class_judgement, class_fleets
- from tick to tick: learned, learned_fleet, learned_checkpoint, model_inputs
"""

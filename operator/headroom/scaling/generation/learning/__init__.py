"""What is learned of a generating service from its counters, from tick to tick.

- cost of an iteration: intervals, mean_iterations, teaching, ledger, steadiness, estimate,
  ratios, least_squares, sums, experts, identification
- lengths: lengths, length_sums, length_steps, length_increase, accepted_drafts
- tails: tail_correction
- from tick to tick: learned, learned_checkpoint, model_inputs, seen_load
"""

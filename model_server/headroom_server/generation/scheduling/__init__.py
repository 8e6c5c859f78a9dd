"""Decides every iteration: which sequences decode, which prompts advance, who waits. Pure.

- the iteration: scheduler, iteration_plan, decode_plan, prompt_fill, prompt_starts,
  iteration_budget, pace, executing_iteration, outcome, endings
- its time: iteration_cost, cost_sums
- who may wait: intake, admission, forecast, expiry
- who comes next: service_order, waiting_line, priority_line, tenant_charges, served_before, seats
- sequences: state, sequences, usual_prompts, output_lengths, counts, options
- memory: kv_blocks, kv_memory, memory_peak, prefix_digests
- drafts: speculation, lookup
"""

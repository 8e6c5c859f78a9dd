"""PURE. Decides every iteration: which sequences decode, which prompts advance, who waits.

- the iteration: scheduler, flight, decode_plan, prompt_fill, pace, outcome, iteration_cost
- who waits: admission, forecast, waiting_line, served_before, seats, expiry, endings, work
- sequences: state, sequences, usual_prompts, output_lengths, counts, options
- memory: kv_blocks, kv_memory, prefix_digests
- drafts: speculation, lookup
"""

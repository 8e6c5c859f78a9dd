"""An executor of generation in plain torch: Llama, Qwen and Mistral families.

- the interface: executor; drafting, for a small model that guesses ahead
- a folder as a model: loading, model_shape, config_fields, checkpoint, weights, linear, dtypes,
  rope
- memory: memory
- the forward pass: decoder, layout, attention; decode_graphs, decode_kernels,
  decode_tables, for recorded decodes
- the next token: sampling, distributions, chance, adjustments, grammar_masks, reported
"""

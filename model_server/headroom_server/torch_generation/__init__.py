"""An executor of generation in plain torch: Llama, Qwen and Mistral families."""

"""An executor of generation in plain torch: Llama, Qwen and Mistral families.

- the interface: executor, opened by loading; drafting, for a small model that guesses ahead
- model: a folder as a model, and the memory that it leaves
- forward: the forward pass of an iteration
- next_token: the distribution of the next token, and one draw of it
"""

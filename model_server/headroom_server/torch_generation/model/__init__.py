"""A Hugging Face folder as a model: its shape, checked; its weights; the memory that is left."""

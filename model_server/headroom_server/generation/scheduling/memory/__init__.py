"""The memory of keys and values: blocks, shared prefixes, and what each sequence holds. Pure."""

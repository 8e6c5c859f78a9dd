"""The memory of keys and values: blocks, shared prefixes, and the blocks of each sequence. Pure."""

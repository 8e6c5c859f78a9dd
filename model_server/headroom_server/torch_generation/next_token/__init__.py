"""The next token of each sequence: what requests add or forbid, its distribution, one draw."""

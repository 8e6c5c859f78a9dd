"""How long prompts and answers are, learned from counters. Pure."""

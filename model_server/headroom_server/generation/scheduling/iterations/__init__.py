"""Plans an iteration and applies its result: decodes, prompts, drafts, room in memory. Pure."""

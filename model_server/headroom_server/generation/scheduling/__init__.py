"""PURE. Decides every iteration: which sequences decode, which prompts advance, who waits."""

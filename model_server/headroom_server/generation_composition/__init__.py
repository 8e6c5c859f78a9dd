"""The parts of a server of generated text, from its settings."""

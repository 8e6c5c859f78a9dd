"""The parts of a server of models that batch, from its settings."""

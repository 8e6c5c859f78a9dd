"""The options of the commands, a topic a module, and what they mean as values."""

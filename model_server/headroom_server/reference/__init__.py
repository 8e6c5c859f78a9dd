"""The reference page, from the code: every setting, key of `model.toml` and metric."""

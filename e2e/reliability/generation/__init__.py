"""Part generation: a generating server for minutes, with clients of all kinds."""

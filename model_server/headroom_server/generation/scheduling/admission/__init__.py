"""Which requests are accepted: what is valid, and what would be answered in time. Pure."""

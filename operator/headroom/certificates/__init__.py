"""Which certificates the connections to the operator need, and when each is renewed. Pure."""

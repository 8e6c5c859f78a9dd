"""What the decision remembers from tick to tick, and what of it outlives a restart."""

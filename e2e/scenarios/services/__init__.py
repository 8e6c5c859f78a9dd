"""Services on a real node: their life, load, faults, console and doctor."""

"""A model that generates: its requests, their choices, and the runs that answer them."""

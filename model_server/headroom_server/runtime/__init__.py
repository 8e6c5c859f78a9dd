"""Models being served: each with its queue, door and accounts, loaded while others serve."""

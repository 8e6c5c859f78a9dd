"""Third-party servers with the same sleeping model; each runs in its own environment."""

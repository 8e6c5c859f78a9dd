"""`headroom simulate`: what a user asked for, runs side by side, and their reports."""

"""An open-loop load generator: replays a recorded trace, never waiting for answers to send."""

"""Who else scales what a service scales: noticed, said, and never fought."""

"""The demo of generation: steps of load on a service with promises on tokens, with a report."""

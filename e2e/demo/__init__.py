"""The demo: a recorded workload on a service that the operator scales, with a report."""

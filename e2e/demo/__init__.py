"""The demo: a recorded workload against a service that the operator scales, with a report."""

"""The workload that a service scales, and LISTs that several services share."""

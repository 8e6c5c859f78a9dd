"""Other writers of a workload's replicas: HPAs, other services, field managers."""

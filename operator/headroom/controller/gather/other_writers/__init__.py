"""What else scales a workload: HPAs, other services, field managers."""

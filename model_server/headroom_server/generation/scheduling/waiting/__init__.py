"""Who waits and who comes next: order of service, tenants' shares, deadlines. Pure."""

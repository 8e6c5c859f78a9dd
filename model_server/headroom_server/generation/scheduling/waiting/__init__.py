"""Queue of waiting requests: order of service, tenants' shares, deadlines. Pure."""

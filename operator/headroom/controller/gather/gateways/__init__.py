"""What gateways counted of a service, and what its activators hold."""

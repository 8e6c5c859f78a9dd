"""Attack clients and hostile tenants against each component, in a cgroup of the shipped size."""

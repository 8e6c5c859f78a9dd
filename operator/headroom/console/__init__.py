"""The web console: read-only pages about all services, and their figures as JSON."""

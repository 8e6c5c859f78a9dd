"""The slow tier: pods of the torch image and of third-party servers: `make e2e-full`."""

"""The activator: holds requests of services without a warm replica and asks for one."""

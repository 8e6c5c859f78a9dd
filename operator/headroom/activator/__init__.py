"""Holds requests of services without a warm replica, and has the operator wake one."""

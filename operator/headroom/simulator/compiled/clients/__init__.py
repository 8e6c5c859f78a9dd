"""The clients of a service: their requests, connections and retries.

- client_kernel, client_tries, client_connections, client_ends, client_unfinished
- their arrays: client_layout, client_state
"""

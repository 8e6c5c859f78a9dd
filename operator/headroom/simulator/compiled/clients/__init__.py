"""The clients of a service: who sends when, over which connection, and what becomes of a miss.

- client_kernel, client_tries, client_connections, client_ends, client_unfinished
- their arrays: client_layout, client_state
"""

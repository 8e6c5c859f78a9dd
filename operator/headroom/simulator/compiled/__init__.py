"""The request-level plant and its clients as compiled code over arrays that change in place.

- plant: kernel, request_routing, executions, request_ends, replica_rows, plant_telemetry,
  unfinished; its arrays: plant_layout, plant_state, plant_allocation
- clients: client_kernel, client_tries, client_connections, client_ends, client_unfinished; their
  arrays: client_layout, client_state
- tools: compiling, heap, rng
"""

"""The request-level plant and its clients as compiled code over arrays that change in place.

- plant: kernel, request_routing, executions, request_ends, replica_rows, plant_telemetry,
  unfinished; its arrays: plant_layout, plant_state, plant_allocation
- who sends to it: `clients/`
- tools: compiling, heap, rng
"""

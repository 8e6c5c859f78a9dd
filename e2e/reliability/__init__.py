"""The operator under faults, on a real API server: `make reliability`.

- the parts: telemetry, crashes, outages, leaders, scale_1000, soak, attacks, generation
- what they share: testbed, with the fault_proxy before its API server
"""

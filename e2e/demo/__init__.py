"""The demo: a recorded workload on a service that the operator scales, with a report.

- the demo of requests, and its numbers: replay, plan, load_job
- parts of every demo: performing, stage, scene, watching
- what is read: reader, readings, views, recording; what follows from it: changes, occupancy
- checks: requirements, checks
- display: layout, table, report, figure, panels
"""

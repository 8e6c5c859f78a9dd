"""Compares Headroom with its peers in fixed cells of the simulator, and judges the promises.

- cells and their inputs: cells, workloads, faults_cells; versions of the inputs: versions
- runs: plan, running, records, progress, options
- points of the comparison: points, field, hindsight
- judgement: judge, judge_faults, promises
- report: report, tables, plot
- golden runs of short scenarios: golden, golden_figures
"""

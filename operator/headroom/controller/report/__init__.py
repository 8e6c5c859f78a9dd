"""Step 4 of a tick: conditions, status, events, the SLO's error budget and recordings.

- conditions: what each condition says, and why
- status: reporter, tick_status, status_throttle, status_writer, state
- events: events, event_poster
- figures: display, evaluation, error_budget, arrival_counter, recording
"""

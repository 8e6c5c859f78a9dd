"""HTTP: connections, the fast path for inference, and the application behind them.

`shared_bound` divides connections and arriving bytes among clients; `close_policy` says which
response is a connection's last.
"""

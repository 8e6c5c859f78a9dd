"""HTTP: the application, the fast path for inference, and connections.

- A connection: `socket_reads` and `read_turns` read it, `http_protocol` parses its requests within
  the bounds of `http_refusals` and `http_options` (`shared_bound` shares them among clients) and
  without `upgrade_offers`, `http_answers` writes, and closes for requests of ASGI too (`closing`);
  streams are written by `socket_stream`, behind `response_stream`.
- Inference: `direct` serves what it can without ASGI (`known_heads`), `middleware` the rest; both
  use `inference` and `response_heads`; ASGI bodies are read by `request_body`. Large bodies are
  parsed in turn: `parsing_turns`, by `fair_turns`.
- Everything else: `app` with its `routes`, `control` (`raw_routes` adds them), `readiness`,
  `documentation` and `openapi`; `failures` are their errors, and `close_policy` says which
  response is a connection's last.
"""

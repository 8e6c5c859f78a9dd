"""vLLM in this process behind the port of a third-party engine. Only `opening` imports vLLM."""

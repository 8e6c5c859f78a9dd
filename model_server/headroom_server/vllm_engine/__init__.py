"""vLLM in this process behind the port of a foreign engine. Only `opening` imports vLLM."""

"""The plant with tokens against a real vLLM: the same requests, the times of every token."""

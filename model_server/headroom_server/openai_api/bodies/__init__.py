"""Bodies of requests to OpenAI's API: parsed, validated and bounded. Pure."""

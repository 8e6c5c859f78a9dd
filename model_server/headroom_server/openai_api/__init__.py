"""OpenAI's API over HTTP: parsing, streaming, errors."""

"""Text and tokens: tokenizers, chat templates, incremental text, stop strings, tool calls."""

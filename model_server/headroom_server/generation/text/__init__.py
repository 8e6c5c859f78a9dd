"""Text and tokens: tokenizers, chat templates, incremental text, stop strings, tool calls.

- a model's text: model_text, from a folder by huggingface_folder
- tokens: tokenizer, huggingface_tokenizer, tokenizer_folder
- prompts: chat, chat_template
- answers: stop_strings, tool_calls
- constraints: grammar, minimum_length, constraint_compiler, constraint_trial, constraint_process,
  constraint_work
"""

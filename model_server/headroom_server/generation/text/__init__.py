"""Text and tokens: tokenizers, chat templates, incremental text, stop strings, tool calls.

- a model's text: model_text, from a folder by huggingface_folder
- tokens: tokenizer, huggingface_tokenizer, tokenizer_folder, library_panics
- prompts: chat, chat_template, template_sandbox, template_budget, template_calls, template_nodes,
  template_sizes
- names of special tokens in messages: special_names, normalized_names, turn_marks
- answers: stop_strings, tool_calls
- constraints: grammar, minimum_length, constraint_compiler, constraint_trial, constraint_process,
  constraint_work, constraint_memory, constraint_owner
"""

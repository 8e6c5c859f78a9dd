"""OpenAI's API over HTTP: parsing, streaming, errors.

- requests come in by: application, middleware, direct (without ASGI), routes, tokenization
- what serves them: service, request_reader, choice_requests, answer_contexts
- the paths and what is particular to each: endpoints, generate_extension, triton_fields, errors
- their parts: `bodies` (what a client asks for), `prompts` (what the engine gets), `answers`
"""

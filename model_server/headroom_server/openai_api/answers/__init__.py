"""Answers of a generating model: as JSON, as streams, and from the cache.

- from deliveries to parts: choice_answer, choice_parts
- a whole answer: collecting; a stream: streaming, stream_events, held_parts; memory: unread
- JSON: encoding, chat_form, completion_form
- to and from the engine and the cache: submission, answer_sender, cached
"""

"""Calls a generating server with LangChain's client and prints the answers as JSON.

Runs in the environment of the client, which has nothing of this project.
"""

import json
import sys

import openai
from langchain_openai import ChatOpenAI, OpenAI

COMMON = {"base_url": f"{sys.argv[1]}/v1", "api_key": "none", "temperature": 0, "max_retries": 0}
MESSAGES = [("system", "Be brief."), ("human", "Tell me a story.")]

chat = ChatOpenAI(model="writer", max_tokens=20, stream_usage=True, **COMMON)
whole = chat.invoke(MESSAGES)
parts = list(chat.stream(MESSAGES))
text = OpenAI(model="writer", max_tokens=20, **COMMON)
try:
    ChatOpenAI(model="other", **COMMON).invoke("hi")
    error = ""
except openai.NotFoundError as failure:
    error = type(failure).__name__
print(
    json.dumps(
        {
            "whole": whole.content,
            "finish": whole.response_metadata["finish_reason"],
            "usage": whole.usage_metadata,
            "streamed": "".join(one.content for one in parts),
            "streamed_usage": next(one.usage_metadata for one in parts if one.usage_metadata),
            "batch": [one.content for one in chat.batch(["one", "two", "three"])],
            "text": text.invoke("Once"),
            "text_streamed": "".join(text.stream("Once")),
            "error": error,
        }
    )
)

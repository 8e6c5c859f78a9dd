"""POST /tokenize and /detokenize: tokens of texts and conversations, and their bounds."""

from __future__ import annotations

import pytest

from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import BYTE_BOS, BYTE_EOS, ByteTokenizer
from support.generation_front import LIMITS, front

pytestmark = pytest.mark.clock
HI = [104, 105]
CHAT = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "hi"}, [BYTE_BOS, *HI]),
        ({"prompt": "hi", "add_special_tokens": False}, HI),
        ({"prompt": ""}, [BYTE_BOS]),
        ({"messages": CHAT}, [*b"user: hi\nassistant: "]),
        ({"messages": CHAT, "add_generation_prompt": False}, [*b"user: hi\n"]),
        ({"messages": CHAT, "add_special_tokens": True}, [BYTE_BOS, *b"user: hi\nassistant: "]),
    ],
)
async def test_tokens_are_those_of_the_prompt(body: dict[str, object], tokens: list[int]) -> None:
    async with front() as world:
        answer = await world.post("/tokenize", **body)
    assert answer.json() == {
        "count": len(tokens),
        "max_model_len": LIMITS.context_tokens,
        "tokens": tokens,
        "token_strs": None,
    }


async def test_model_may_be_omitted_and_names_are_those_of_the_vocabulary() -> None:
    async with front() as world:
        body = {"prompt": "a é", "return_token_strs": True}
        answer = (await world.http.post("/tokenize", json=body)).json()
    assert answer["token_strs"] == ["<bos>", "a", "<0x20>", "<0xC3>", "<0xA9>"]


async def test_tokens_become_the_text_again() -> None:
    async with front() as world:
        tokens = (await world.post("/tokenize", prompt="grüße €")).json()["tokens"]
        text = (await world.post("/detokenize", tokens=[*tokens, BYTE_EOS])).json()
        nothing = (await world.http.post("/detokenize", json={"tokens": []})).json()
    assert text == {"prompt": "<bos>grüße €<eos>"}
    assert nothing == {"prompt": ""}


async def test_a_chat_has_as_many_tokens_as_its_answer_counts() -> None:
    async with front() as world:
        counted = (await world.post("/tokenize", messages=CHAT)).json()["count"]
        used = (await world.chat("hi")).json()["usage"]["prompt_tokens"]
    assert counted == used


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/tokenize", {}, 400, "prompt or messages is required, and not both"),
        ("/tokenize", {"prompt": "a", "messages": CHAT}, 400, "prompt or messages is required"),
        ("/tokenize", {"prompt": "a", "tools": []}, 400, "tools must be omitted with prompt"),
        ("/tokenize", {"prompt": "a", "model": "x"}, 404, "model must be 'm'"),
        ("/tokenize", {"prompt": "a", "stream": True}, 400, "unknown parameter: stream"),
        ("/tokenize", {"prompt": "a" * 90_000}, 413, "the body must have at most"),
        ("/detokenize", {"tokens": [1, 258]}, 400, "tokens must be below 258; got 258"),
        ("/detokenize", {"tokens": [-1]}, 400, "tokens.0"),
        ("/detokenize", {"tokens": [1], "model": "x"}, 404, "model must be 'm'"),
    ],
)
async def test_wrong_body_is_explained_and_is_no_request_for_text(
    path: str, body: dict[str, object], status: int, message: str
) -> None:
    async with front() as world:
        answer = await world.http.post(path, json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(message)
    assert world.outcomes() == {}
    assert world.generator.ledger.invalid == {}


async def test_long_text_is_tokenized_on_the_thread_of_long_prompts() -> None:
    text = "x" * 20_000
    async with front() as world:
        answer = await world.post("/tokenize", prompt=text)
    assert answer.json()["count"] == 20_001


async def test_conversation_needs_a_chat_template() -> None:
    async with front(text=ModelText(tokenizer=ByteTokenizer())) as world:
        answer = await world.post("/tokenize", messages=CHAT)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages"

"""`scripts/record` against servers on loopback that repeat secrets: none reaches the file of rows."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts.record import main
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall, Usage
from toolwire.providers.framing import aws_event

KEY = "correct-horse-battery-9912"
ORGANISATION = "org-Zk3vQpL0aBcD7xYw"
ACCOUNT = "481516234299"
COOKIE = "c00kie-of-the-load-balancer"
OWN = "Nineteen Eighty-Four Ltd."
ENVIRONMENT = "s3cr3t-of-the-shell-17"
SHAPED = "sk-proj-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
SECRETS = (KEY, ORGANISATION, ACCOUNT, COOKIE, OWN, ENVIRONMENT, SHAPED)
HEADERS = {"openai-organization": ORGANISATION, "set-cookie": f"__lb={COOKIE}; Path=/; Secure", "x-account": ACCOUNT}
LEAK = f"key {KEY}, in {ORGANISATION}, for {ACCOUNT}, with {COOKIE}, of {OWN}, from {ENVIRONMENT}, and {SHAPED}."
CALL = ToolCall("get_weather", {"city": "Paris"}, "call_0001")
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL]}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.setenv("DEPLOY_TOKEN", ENVIRONMENT)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    Path("hidden.txt").write_text(f"{OWN}\n")


def record(api: str, answer: Callable[[Asked], Answer], *bodies: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Record answers; return the exit status and the rows, which contain no secret."""
    Path("requests.jsonl").write_text("".join(json.dumps(body) + "\n" for body in bodies))
    with serving(answer) as url:
        options = ("--base-url", url, "--key-env", "TEST_KEY", "--hide", "hidden.txt")
        status = main([api, "requests.jsonl", "rows.jsonl", *options])
    text = Path("rows.jsonl").read_text() if Path("rows.jsonl").exists() else ""
    for secret in SECRETS:
        assert secret not in text
        assert base64.b64encode(secret.encode()).decode() not in text
    return status, [json.loads(line) for line in text.splitlines()]


def whole(api: str, response: ParsedResponse) -> bytes:
    return json.dumps(toolwire.get_api(api).encode_response(response, model="m")).encode()


def streamed(api: str, response: ParsedResponse) -> bytes:
    return b"".join(toolwire.get_api(api).encode_stream(toolwire.replay(response), model="m"))


def body_for(api: str, *, stream: bool) -> dict[str, Any]:
    request = toolwire.get_api("openai_chat").decode_request(CHAT)
    body = toolwire.get_api(api).encode_request(request, model="m")
    return {**body, "model": "m", "stream": stream}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "api", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "mistral", "cohere", "ollama"]
)
def test_secrets_are_replaced_in_answers_of_each_api(api: str, stream: bool) -> None:
    response = ParsedResponse(LEAK, tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(9, 5))
    data = (streamed if stream else whole)(api, response)
    answer = Answer(data, content_type="text/event-stream" if stream else "application/json", headers=HEADERS)
    status, rows = record(api, lambda _: answer, body_for(api, stream=stream))
    assert status == 0
    (row,) = rows
    assert (row["api"], row["provider"], row["stream"], row["status"]) == (api, api, stream, 200)
    assert [(call["name"], call["arguments"]) for call in row["calls"]] == [("get_weather", {"city": "Paris"})]
    assert row["text"].count("[redacted]") >= 6
    assert row["text"].startswith("key [redacted], in ")
    # The row is read as any other recording.
    codec = toolwire.get_api(api)
    if stream:
        decoder = codec.stream_decoder()
        read = toolwire.collect([*decoder.feed(row["sse"].encode()), *decoder.finish()])
    else:
        read = codec.decode_response(row["response"])
    assert (read.content, read.tool_calls[0].arguments, read.problems) == (row["text"], CALL.arguments, ())


def test_an_answer_without_secrets_is_recorded_as_it_came() -> None:
    data = streamed("openai_chat", ParsedResponse("It rains.", tool_calls=(CALL,)))
    _, (row,) = record("openai_chat", lambda _: Answer(data, headers=HEADERS), {**CHAT, "stream": True})
    assert row["sse"].encode() == data
    assert row["request"] == {**CHAT, "stream": True}
    assert row["feats"] == ["tools"]
    assert row["url_path"] == "/chat/completions"


def test_secrets_are_replaced_in_requests_and_errors() -> None:
    def refuse(request: Asked) -> Answer:
        error = {"error": {"message": f"{LEAK} Headers: {request.headers}"}}
        return Answer(json.dumps(error).encode(), status=400, headers=HEADERS)

    body = {**CHAT, "messages": [{"role": "user", "content": LEAK}], "user": "user-Ab12Cd34Ef56", "password": "x1y2"}
    status, (row,) = record("openai_chat", refuse, body)
    assert (status, row["status"], row["calls"], row["text"]) == (0, 400, [], "")
    assert "user-Ab12Cd34Ef56" not in json.dumps(row)
    assert row["request"]["password"] == "[redacted]"
    assert row["request"]["messages"][0]["content"].startswith("key [redacted], in ")


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("arn:aws:bedrock:us-east-1:481516234299:inference-profile/x", "481516234299"),
        ("User: arn:aws:sts::481516234299:assumed-role/Admin/jane is not authorized", "jane"),
        ("in organization `org_01hzx5k2m3n4p5q6r7s8t9` on tier", "01hzx5k2m3n4p5q6r7s8t9"),
        ("projects/my-company-prod/locations/eu", "my-company-prod"),
        ("workspace wrkspc_01JwQvzr7rXLA5AGx3HKfFUJ", "01JwQvzr7rXLA5AGx3HKfFUJ"),
        ("Account ID: 5550123456", "5550123456"),
    ],
)
def test_ids_of_accounts_are_recognized_by_their_shape(text: str, gone: str) -> None:
    _, (row,) = record("openai_chat", lambda _: Answer(whole("openai_chat", ParsedResponse(text))), CHAT)
    assert gone not in json.dumps(row)
    assert row["text"]


def test_a_secret_that_is_split_between_pieces_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = [toolwire.ContentDelta("The key is "), *(toolwire.ContentDelta(letter) for letter in KEY)]
    data = b"".join(toolwire.get_api("openai_chat").encode_stream(pieces, model="m"))
    status, rows = record("openai_chat", lambda _: Answer(data), {**CHAT, "stream": True})
    assert (status, rows) == (1, [])
    error = capsys.readouterr().err
    assert "request 1 is not recorded: a known secret is in the pieces of a stream" in error
    assert KEY not in error


def test_an_encoded_secret_is_not_recorded() -> None:
    text = base64.b64encode(KEY.encode()).decode()
    status, (row,) = record("openai_chat", lambda _: Answer(whole("openai_chat", ParsedResponse(text))), CHAT)
    assert status == 0 and row["text"].startswith("[redacted]")
    assert text not in json.dumps(row)


def test_a_secret_in_binary_frames_is_not_recorded() -> None:
    body = {**body_for("bedrock_converse", stream=True), "modelId": "m"}
    leaking = streamed("bedrock_converse", ParsedResponse(LEAK))
    assert record("bedrock_converse", lambda _: Answer(leaking), body) == (1, [])
    data = streamed("bedrock_converse", ParsedResponse("It rains.", tool_calls=(CALL,)))
    status, (row,) = record("bedrock_converse", lambda _: Answer(data), body)
    assert (status, base64.b64decode(row["raw_b64"]), row["text"]) == (0, data, "It rains.")


def test_a_secret_in_frames_with_events_in_base64_is_not_recorded() -> None:
    body = body_for("anthropic_bedrock", stream=True)
    data = streamed("anthropic_bedrock", ParsedResponse("It rains.", tool_calls=(CALL,)))
    status, (row,) = record("anthropic_bedrock", lambda _: Answer(data), body)
    assert (status, base64.b64decode(row["raw_b64"]), row["text"]) == (0, data, "It rains.")
    assert [call["name"] for call in row["calls"]] == ["get_weather"]
    # A member that no part of the answer contains, such as the id of the message.
    start = {"type": "message_start", "message": {"id": KEY, "usage": {}}}
    encoded = base64.b64encode(json.dumps(start).encode()).decode()
    assert KEY[:9] not in encoded
    Path("rows.jsonl").unlink()
    leaking = aws_event({"bytes": encoded}, "chunk") + data
    assert record("anthropic_bedrock", lambda _: Answer(leaking), body) == (1, [])


def test_one_refused_row_does_not_stop_the_others() -> None:
    split = b"".join(toolwire.get_api("openai_chat").encode_stream(map(toolwire.ContentDelta, KEY), model="m"))
    answers = iter([split, whole("openai_chat", ParsedResponse("It rains."))])
    status, rows = record("openai_chat", lambda _: Answer(next(answers)), {**CHAT, "stream": True}, CHAT)
    assert (status, [row["text"] for row in rows]) == (1, ["It rains."])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "requests.jsonl, line 1: it is not JSON"),
        ('{"messages": []}', "requests.jsonl, line 1: it is not a JSON object with a model"),
    ],
)
def test_wrong_requests_are_named(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("requests.jsonl").write_text(text)
    assert main(["openai_chat", "requests.jsonl", "rows.jsonl"]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_key_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("requests.jsonl").write_text(json.dumps(CHAT))
    assert main(["openai_chat", "requests.jsonl", "rows.jsonl"]) == 1
    assert "set OPENAI_API_KEY" in capsys.readouterr().err


def test_a_file_that_is_missing_is_named_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openai_chat", "missing.jsonl", "rows.jsonl"]) == 2
    assert capsys.readouterr().err == (
        "scripts/record: missing.jsonl cannot be opened: No such file or directory (`scripts/record --help` says what "
        "each file contains)\n"
    )

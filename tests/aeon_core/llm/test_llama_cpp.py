"""LlamaCppModel on real GGUF files: tiny ones with random weights, and parrots that say what a test wants."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import jsonschema_rs
import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.effects.model_calls import adapters_of
from aeon_core.errors import LLMError, ModelUnavailableError, UsageError
from aeon_core.json_safe import parse_json
from aeon_core.llm.base import LLMRequest, Message
from aeon_core.llm.llama_cpp import MAX_CONTEXT, LlamaCppModel
from aeon_core.llm.wire import ToolNames
from aeon_core.runs.factory import connect_model
from tests.aeon_core.llm.tiny_gguf import CHAT_TEMPLATE, write_tiny_gguf
from tests.sampling import sample
from tests.waiting import PATIENCE

TOOL: dict[str, Any] = {
    "name": "calc.add",
    "description": "Adds.",
    "input_schema": {"properties": {"a": {"type": "integer"}}},
}
NATIVE = (
    "{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{% if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>\n"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}\n</tool_call>"
    "{% endfor %}{% endif %}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 0, "maximum": 9},
        "name": {"type": "string", "maxLength": 5},
        "flags": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["score", "name", "flags"],
    "additionalProperties": False,
}

LISTENING = "0A"

Make = Callable[..., LlamaCppModel]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes models that compute in one thread: threads that wait for one another take all cores of a busy machine."""
    import xllamacpp

    made, params = list[LlamaCppModel](), xllamacpp.CommonParams

    def one_thread() -> Any:
        given = params()
        given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
        return given

    monkeypatch.setattr(xllamacpp, "CommonParams", one_thread)

    def build(*, timeout: float = 60.0, context_window: int | None = None, **options: Any) -> LlamaCppModel:
        path = write_tiny_gguf(tmp_path / f"tiny{len(made)}.gguf", **options)
        made.append(LlamaCppModel(str(path), timeout=timeout, context_window=context_window))
        return made[-1]

    yield build
    for model in made:
        model.close()


def request(prompt: str = "hi", **fields: Any) -> LLMRequest:
    given = {"purpose": "plan", "system": "Aeon plan", "messages": [{"role": "user", "content": prompt}], **fields}
    return LLMRequest(**given)


def test_a_reply_has_its_text_usage_and_stop_reason(make: Make) -> None:
    model = make(says=("Hel", "lo ", "wörld"))
    heard: list[str] = []
    reply = model.complete(request(on_delta=heard.append))
    assert (reply.text, heard) == ("Hello wörld", ["Hel", "lo ", "wörld"])
    # One token a byte, one for the beginning; a blank is written as one of three bytes.
    prompt = "<system>Aeon plan\n<user>hi\n<assistant>".replace(" ", "▁").encode()
    assert reply.usage == {"input_tokens": 1 + len(prompt), "output_tokens": 4}
    assert (reply.stop_reason, reply.model, reply.notices) == ("end", model.model, [])


@pytest.mark.exhaustive
def test_the_same_request_gives_the_same_reply(make: Make) -> None:
    model, other = make(), make()
    first = model.complete(request(max_tokens=40)).text
    model.complete(request("something else", max_tokens=3))
    assert model.complete(request(max_tokens=40)).text == first
    assert other.complete(request(max_tokens=40)).text == first
    assert len(first) > 10


def test_a_reply_ends_at_its_limit(make: Make) -> None:
    reply = make().complete(request(max_tokens=7))
    assert (reply.stop_reason, reply.usage and reply.usage["output_tokens"]) == ("max_tokens", 7)


@pytest.mark.exhaustive
def test_every_reply_meets_its_schema_with_its_bounds(make: Make) -> None:
    model = make()
    validator = jsonschema_rs.validator_for(SCHEMA)
    texts = set()
    for number in range(25):
        reply = model.complete(request(f"number {number}", schema=SCHEMA, max_tokens=600))
        assert reply.stop_reason == "end"
        validator.validate(parse_json(reply.text))
        texts.add(reply.text)
    assert len(texts) > 1


def test_a_schema_without_a_grammar_still_gives_a_reply(make: Make, capfd: Any) -> None:
    reply = make(says=("plain",)).complete(request(schema={"type": "wrong"}))
    assert (reply.text, reply.stop_reason) == ("plain", "end")
    assert capfd.readouterr() == ("", "")


def test_a_prompt_that_does_not_fit_is_a_clear_final_error(make: Make) -> None:
    model = make(context=512)
    assert model.context_window == 512
    with pytest.raises(LLMError, match=r"too long .*: request \(641 tokens\) exceeds .*512.*; shorten") as caught:
        model.complete(request("x" * (600 + len("hi")), max_tokens=5))
    assert caught.value.context["context_too_long"] is True
    assert not caught.value.retryable
    assert model.complete(request(max_tokens=2)).stop_reason == "max_tokens"


def test_a_native_tool_call_is_read_under_the_tools_own_name(make: Make) -> None:
    model = make(
        template=NATIVE, says=("<tool_c", "all>\n", '{"name": "calc_add", "arguments": {"a": 5}}\n</tool_call>')
    )
    reply = model.complete(request(tools=[TOOL]))
    assert reply.tool_calls == [{"id": "call_1", "name": "calc.add", "arguments": {"a": 5}}]
    assert (reply.text, reply.stop_reason) == ("", "tool_use")


CONVERSATION: list[Message] = [
    {"role": "user", "content": "add"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c1", "name": "calc.add", "arguments": {"a": 1}},
            {"id": "c2", "name": "calc.add", "arguments": {"a": 2}},
        ],
    },
    {"role": "tool", "content": "1", "tool_call_id": "c1"},
    {"role": "tool", "content": "no such number", "tool_call_id": "c2", "is_error": True},
    {"role": "user", "content": "go on"},
]


@pytest.mark.exhaustive
def test_a_schema_next_to_native_tools_is_met_too(make: Make) -> None:
    reply = make(template=NATIVE).complete(request(tools=[TOOL], schema=SCHEMA, max_tokens=600))
    assert jsonschema_rs.is_valid(SCHEMA, parse_json(reply.text))
    assert reply.tool_calls == []


@pytest.mark.parametrize(
    "template",
    sample([pytest.param(NATIVE, id="native"), pytest.param(CHAT_TEMPLATE, id="told"), pytest.param(None, id="none")]),
)
def test_a_conversation_with_calls_and_results_is_accepted(make: Make, template: str | None) -> None:
    reply = make(template=template).complete(request(messages=CONVERSATION, tools=[TOOL], max_tokens=3))
    assert reply.usage is not None
    told = [len(str(message["content"])) for message in CONVERSATION]
    assert reply.usage["input_tokens"] > sum(told)


def test_a_model_whose_template_has_no_tools_gets_them_in_the_prompt_and_calls_by_json(make: Make) -> None:
    model = make(says=('{"tool_name": "calc.add", ', '"arguments": {"a": 5}}'))
    bare = model.complete(request())
    reply = model.complete(request(tools=[TOOL]))
    assert reply.tool_calls == [{"id": "call_1", "name": "calc.add", "arguments": {"a": 5}}]
    assert (reply.text, reply.stop_reason) == ("", "tool_use")
    assert bare.tool_calls == []
    assert reply.usage is not None
    assert bare.usage is not None
    assert reply.usage["input_tokens"] > bare.usage["input_tokens"] + len(str(TOOL["input_schema"]))


def test_the_context_is_the_models_up_to_a_limit(make: Make) -> None:
    assert [make(context=context).context_window for context in (1024, 1_000_000)] == [1024, MAX_CONTEXT]


def test_a_configured_context_window_is_the_models_up_to_what_it_was_trained_for(tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "m.gguf", context=100_000)
    for asked, given in [(None, MAX_CONTEXT), (2000, 2000), (20_000, 20_000), (200_000, 100_000)]:
        for model in (f"llama-cpp:{file}", [f"llama-cpp:{file}", "simulated:default"]):
            connected = connect_model(RunConfig(model=model, judge_model=f"llama-cpp:{file}", context_window=asked))
            windows = [each.context_window for each in adapters_of(connected) if not each.simulated]
            assert windows == [given, given]
    with pytest.raises(UsageError, match="context_window is of type str, expected an int"):
        LlamaCppModel(str(file), context_window="8k")  # type: ignore[arg-type]


def test_a_model_gets_memory_for_its_context_window(make: Make) -> None:
    model = make(context=100_000, context_window=1024)
    with pytest.raises(LLMError, match=r"request \(1541 tokens\) exceeds .*1024"):
        model.complete(request("x" * 1502, max_tokens=5))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "does not exist"),
        (b"", "it is not a GGUF file"),
        (b"PK\x03\x04 something else", "it is not a GGUF file"),
        (b"GGUF", "its header is incomplete"),
        (b"GGUF\x01\0\0\0" + bytes(16), "its GGUF version is 1, expected one of 2, 3"),
        (b"GGUF\x03\0\0\0" + bytes(8) + b"\xff" * 8, "entries, which is impossible"),
        (b"GGUF\x03\0\0\0" + bytes(8) + b"\x01" + bytes(7) + b"\xff" * 8, "its header is incomplete"),
        (b"GGUF\x03\0\0\0" + bytes(16), "has no architecture"),
    ],
)
def test_a_file_that_is_not_a_model_is_refused_before_any_call(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=told) as caught:
        LlamaCppModel(str(path))
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 3


def test_an_embedding_model_is_refused_before_any_call(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_causal_attention(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(
        ModelUnavailableError, match="makes embeddings, not text; use a complete GGUF file of a chat mo"
    ):
        LlamaCppModel(str(path))


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"cannot read the model file .*: Is a directory"):
        LlamaCppModel(str(tmp_path))


@pytest.mark.parametrize("kept", [5000, 20_000, 150_000])
def test_a_truncated_model_file_is_a_final_error(tmp_path: Path, kept: int, capfd: Any) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises((LLMError, ModelUnavailableError), match=r"its header is incomplete|cannot load") as caught:
        LlamaCppModel(str(path)).complete(request())
    assert caught.value.exit_code == 3
    assert not getattr(caught.value, "retryable", False)
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_reported_with_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_core.llm.llama_cpp.find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError, match=r"pip install 'aeon-tui\[local\]'") as caught:
        LlamaCppModel(str(tmp_path / "m.gguf"))
    assert caught.value.exit_code == 3


def test_a_timeout_must_be_a_number_of_seconds(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a number of seconds"):
        LlamaCppModel(str(write_tiny_gguf(tmp_path / "m.gguf")), timeout=0)


def test_the_model_process_is_silent_and_private(make: Make, capfd: Any) -> None:
    model = make()
    model.complete(request(max_tokens=3))
    ours = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    tcp = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    assert not [fields for fields in tcp if fields[3] == LISTENING and f"socket:[{fields[9]}]" in ours]
    unix = [line.split() for line in Path("/proc/self/net/unix").read_text().splitlines()[1:]]
    paths = [fields[7] for fields in unix if len(fields) > 7 and f"socket:[{fields[6]}]" in ours]
    (folder,) = {Path(path).parent for path in paths if path.endswith("s.sock")}
    assert folder.stat().st_mode & 0o777 == 0o700
    model.close()
    assert not folder.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.exhaustive
def test_silence_ends_a_call_and_the_next_one_works(make: Make) -> None:
    model = make(timeout=0.001)
    with pytest.raises(LLMError, match=r"no answer from llama-cpp://in-process within 0.001 s") as caught:
        model.complete(request("x" * 1900, max_tokens=5))
    assert caught.value.retryable


def test_closing_ends_a_generation_in_flight(make: Make) -> None:
    model = make(context=MAX_CONTEXT)
    begun, errors = threading.Event(), queue.SimpleQueue[BaseException]()
    closed, texts = threading.Event(), list[str]()

    def heard(text: str) -> None:
        texts.append(text)
        begun.set()
        assert closed.wait(PATIENCE)

    def call() -> None:
        try:
            model.complete(request(max_tokens=8000, on_delta=heard))
        except BaseException as error:
            errors.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(PATIENCE)
    model.close()
    closed.set()
    error = errors.get(timeout=PATIENCE)
    thread.join()
    assert len(texts) == 1  # and nothing of what was received while the listener was busy
    assert isinstance(error, LLMError)
    assert not error.retryable
    assert "the adapter was closed" in error.message
    assert model.complete(request(max_tokens=2)).stop_reason == "max_tokens"


END = """
import sys, threading
from aeon_core.llm.llama_cpp import LlamaCppModel
from aeon_core.llm.base import LLMRequest
model, begun = LlamaCppModel(sys.argv[1]), threading.Event()
say = LLMRequest("answer", "", [{"role": "user", "content": "hi"}], max_tokens=8000, on_delta=lambda _: begun.set())
if sys.argv[2] == "idle":
    say.max_tokens = 2
    model.complete(say)
else:
    def call():
        try:
            model.complete(say)
            print("whole", flush=True)
        except Exception:
            pass
    threading.Thread(target=call, daemon=True).start()
    assert begun.wait(120)
print("done", flush=True)
sys.exit(5)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", sample(["idle", "daemon"], 1))
def test_the_process_exits_cleanly_during_generation(tmp_path: Path, how: str) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf", context=MAX_CONTEXT)
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", END, str(path), how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (5, "done\n", "")


@pytest.mark.parametrize("schema", [True, {"$ref": "#"}, {"$ref": "https://example.com/x.json"}], ids=str)
def test_tools_of_a_schema_that_llama_cpp_cannot_use_are_described_in_the_prompt(make: Make, schema: Any) -> None:
    model = make(template=NATIVE, says=('{"tool_name": "find", ', '"arguments": {"x": 5}}'))
    tool = {"name": "find", "description": "Finds.", "input_schema": {"type": "object", "properties": {"x": schema}}}
    reply = model.complete(request(tools=[tool]))
    assert reply.tool_calls == [{"id": "call_1", "name": "find", "arguments": {"x": 5}}]
    (notice,) = reply.notices
    assert notice.endswith(
        "llama-cpp://in-process does not support tools; they are described in the prompt from now on"
    )
    assert model.complete(request(tools=[tool])).notices == []


def test_llama_cpp_reports_no_pattern_of_a_tool_on_the_terminal(make: Make, capfd: Any) -> None:
    patterns = ["[0-9]{5}", r"^\d+$", "^(?!a)b$", "^[A-Z]{2}[0-9]+$", "^v1_[a-z-]*$"]
    codes = {f"c{number}": {"type": "string", "pattern": pattern} for number, pattern in enumerate(patterns)}
    inner = {"type": "array", "items": {"anyOf": [{"type": "string", "description": "A code.", "pattern": "x|y"}]}}
    properties = {**codes, "pattern": {"type": "string"}, "inner": inner}
    tool = {"name": "find", "description": "Finds.", "input_schema": {"type": "object", "properties": properties}}
    before = str(tool)
    given = request(tools=[tool], max_tokens=2)
    model = make(template=NATIVE)
    (sent,) = model._params(given, ToolNames([tool]))["tools"]
    told = sent["function"]["parameters"]["properties"]
    assert told["c0"] == {"type": "string", "description": "It matches [0-9]{5}"}
    assert told["c3"] == codes["c3"]
    assert told["pattern"] == {"type": "string"}
    assert told["inner"]["items"]["anyOf"] == [{"type": "string", "description": "A code. It matches x|y"}]
    assert str(tool) == before
    assert model.complete(given).stop_reason == "max_tokens"
    assert capfd.readouterr() == ("", "")


def test_connecting_loads_no_llama(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf")
    code = (
        "import sys\nfrom aeon_core.llm.llama_cpp import LlamaCppModel\n"
        f"LlamaCppModel({str(path)!r})\nprint('xllamacpp' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

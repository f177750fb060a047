"""A GGUF model in this process, with llama.cpp (Decision 1): no key, and no server that others could reach."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import struct
import tempfile
import threading
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from aeon_core.errors import ModelUnavailableError
from aeon_core.installation import missing_extra
from aeon_core.llm.base import LLMRequest, LLMResponse, ToolCallDict
from aeon_core.llm.connect import Endpoint, check_timeout
from aeon_core.llm.http import SdkModel, Sockets, make_client
from aeon_core.llm.openai import OpenAIModel
from aeon_core.llm.wire import ToolNames, map_schema
from aeon_core.regular_file import open_regular
from aeon_core.suggest import check_type

MAGIC = b"GGUF"

_FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_MAX_ENTRIES = 100_000
_MAX_KEPT = 1_000_000
_MAX_SKIPPED = 1 << 40
_TEMPLATE = "tokenizer.chat_template"


class GgufError(ValueError):
    """The file is not a usable GGUF file; the message says why."""


@dataclass(frozen=True)
class GgufHeader:
    """What a file says about its model."""

    context_length: int | None
    """The context, in tokens, that the model was trained for; None if the file does not say."""

    knows_tools: bool
    """Whether one of the model's chat templates renders tools."""


def read_gguf_header(path: Path) -> GgufHeader:
    """Return the file's header. Raises GgufError if it is not a file of a model that writes text, and OSError."""
    with os.fdopen(open_regular(path), "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise GgufError("it is not a GGUF file")
        version, _, count = _unpacked(file, "<IQQ")
        if version not in _VERSIONS:
            raise GgufError(f"its GGUF version is {version}, expected one of {', '.join(map(str, _VERSIONS))}")
        if count > _MAX_ENTRIES:
            raise GgufError(f"its header lists {count} entries, which is impossible")
        entries = {_text(file): _value(file, _unpacked(file, "<I")[0]) for _ in range(count)}
    if (architecture := entries.get("general.architecture")) is None:
        raise GgufError("its header has no architecture")
    if entries.get(f"{architecture}.attention.causal") is False:
        raise GgufError("its model makes embeddings, not text")
    length = entries.get(f"{architecture}.context_length")
    templates = [value for key, value in entries.items() if key.startswith(_TEMPLATE) and isinstance(value, str)]
    return GgufHeader(
        context_length=length if isinstance(length, int) and length > 0 else None,
        knows_tools=any("tools" in template for template in templates),
    )


def _value(file: BinaryIO, kind: int) -> Any:
    """Return a scalar or a text; skip an array and return None."""
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _unpacked(file, _form(kind))[0]
    inner, length = _unpacked(file, "<IQ")
    if inner == _STRING:
        for _ in range(length):
            _text(file)
    else:
        _skip(file, length * struct.calcsize(_form(inner)))
    return None


def _text(file: BinaryIO) -> str:
    (length,) = _unpacked(file, "<Q")
    kept = file.read(min(length, _MAX_KEPT))
    _skip(file, length - len(kept))
    return kept.decode("utf-8", "replace")


def _unpacked(file: BinaryIO, form: str) -> tuple[Any, ...]:
    data = file.read(struct.calcsize(form))
    if len(data) < struct.calcsize(form):
        raise GgufError("its header is incomplete")
    return struct.unpack(form, data)


def _form(kind: int) -> str:
    if kind not in _FORMS:
        raise GgufError(f"its header holds a value of the unknown type {kind}")
    return _FORMS[kind]


def _skip(file: BinaryIO, length: int) -> None:
    # After a seek past the end of the file, the next read fails.
    if length > _MAX_SKIPPED:
        raise GgufError("its header is incomplete")
    file.seek(length, 1)


MAX_CONTEXT = 8192
"""The most tokens of request and reply together unless more are asked for: a whole context can take many GB."""

_BATCH = 128
_GUIDANCE = {"whitespace_flexible": False, "coerce_one_of": True, "lenient": True}
"""How the grammar is made: no endless whitespace, and an approximation of what it cannot express."""


_PATTERN = re.compile(r"\^(?:[A-Za-z0-9_]|\[[A-Za-z0-9_-]+\](?:[*+?]|\{\d{1,2}\})?)+\$")
"""A pattern that llama.cpp can surely use."""


class LlamaCppModel(OpenAIModel):
    """The model in a GGUF file. It is loaded at the first call, and answers the same request in the same words.

    llama.cpp's own server runs in this process and speaks Chat Completions on a socket in a folder that only the user
    can access. `context_window` is at most what the model was trained for, and MAX_CONTEXT tokens if None. Raises
    ModelUnavailableError (exit 3) for a missing package or a file that is missing, unreadable or not GGUF;
    UsageError for a bad timeout or context window.
    """

    def __init__(self, path: str, *, timeout: float = 120.0, context_window: int | None = None) -> None:
        check_type(context_window, int | None, "context_window")
        if find_spec("xllamacpp") is None:
            raise ModelUnavailableError(missing_extra(f"llama-cpp:{path[:80]}", "local").message)
        file = Path(path).expanduser().absolute()
        header = _header(file)
        wanted = context_window or MAX_CONTEXT
        context = min(header.context_length or wanted, wanted)
        key = secrets.token_urlsafe()
        endpoint = Endpoint("llama-cpp", path, "llama-cpp://in-process", None, "", key, check_timeout(timeout))
        self._knows_tools = header.knows_tools
        SdkModel.__init__(self, endpoint, partial(_Loaded, file, context, endpoint))
        self.context_window: int | None = context

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        A grammar enforces a schema while the model writes, if llama.cpp can make one for it.
        """
        reply = super().complete(request)
        # llama.cpp's own ids are random.
        calls: list[ToolCallDict] = [{**call, "id": f"call_{n}"} for n, call in enumerate(reply.tool_calls, 1)]
        return reply.model_copy(update={"model": self.model, "tool_calls": calls})

    def _has(self, option: str, request: LLMRequest) -> bool:
        if option == "tools" and (request.schema is not None or not self._knows_tools):
            return False  # llama.cpp accepts no grammar with native tools
        return option not in ("response_format", "reasoning_effort") and super()._has(option, request)

    def _params(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        # The reply is always streamed, so that the timeout applies to silence.
        params = super()._params(replace(request, on_delta=request.on_delta or (lambda _: None)), names)
        for tool in params.get("tools", ()):
            tool["function"]["parameters"] = _readable(tool["function"]["parameters"])
        # Continuing from an earlier prompt's state may change results in the last digits.
        extra: dict[str, Any] = {"cache_prompt": False, "return_progress": True}
        if "tool_choice" in params:
            params["tool_choice"] = "required"
        if (schema := request.bounded_schema) is not None:
            import xllamacpp

            # `response_format` rejects some replies that meet the schema.
            extra["grammar"] = xllamacpp.json_schema_to_grammar({**schema, "x-guidance": _GUIDANCE})
        return {**params, "temperature": 0, "extra_body": extra}


def _readable(node: Any) -> Any:
    """Return a schema with most patterns in descriptions: those that llama.cpp cannot use, it reports on stderr."""
    if not isinstance(node, dict):
        return node
    pattern = node.get("pattern")
    if isinstance(pattern, str) and not _PATTERN.fullmatch(pattern):
        rest = {key: value for key, value in node.items() if key != "pattern"}
        node = {**rest, "description": f"{node.get('description', '')} It matches {pattern}".lstrip()}
    return map_schema(node, _readable)


class _Loaded:
    """The client of llama.cpp's server, with that server, its model, and the folder of its socket."""

    def __init__(self, file: Path, context: int, endpoint: Endpoint, sockets: Sockets) -> None:
        import httpx2

        with contextlib.ExitStack() as opened:
            socket = opened.enter_context(tempfile.TemporaryDirectory(prefix="aeon-")) + "/s.sock"
            self._server = _load(file, context, endpoint, socket)
            options, transport = {"base_url": "http://in-process/v1"}, httpx2.HTTPTransport(uds=socket)
            client = opened.enter_context(make_client(OpenAIModel._sdk, endpoint, options, sockets, transport))
            self.chat = client.chat
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()
        # Releasing the model takes until the current token or part of the prompt is done.
        server, self._server = [self._server], None
        with contextlib.suppress(RuntimeError):  # no thread can be started at the end of the process
            threading.Thread(target=server.clear).start()


def _header(file: Path) -> GgufHeader:
    shown = repr(str(file)[:200])
    try:
        return read_gguf_header(file)
    except FileNotFoundError:
        raise ModelUnavailableError(f"the model file {shown} does not exist; use the path of a GGUF file") from None
    except GgufError as error:
        raise ModelUnavailableError(
            f"cannot use the model file {shown}: {error}; use a complete GGUF file of a chat model"
        ) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ModelUnavailableError(f"cannot read the model file {shown}: {why}; use a GGUF file") from None


def _load(file: Path, context: int, endpoint: Endpoint, socket: str) -> Any:
    """Return llama.cpp's running server for the model. Raises ModelUnavailableError if it cannot be loaded."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = context
    params.n_parallel = 1
    # An abandoned call ends only between two batches of the prompt.
    params.n_batch = _BATCH
    # Loading blocks Python, so the weights are read when first needed.
    params.warmup = False
    params.cache_ram_mib = 0
    # Otherwise it writes directly to the terminal, bypassing Python's streams.
    params.verbosity = -1
    params.ui = False
    params.endpoint_slots = False
    params.api_keys = [endpoint.key]
    params.hostnames = [socket]
    try:
        return xllamacpp.Server(params)
    except RuntimeError:
        raise ModelUnavailableError(
            "cannot load the model file; is it complete, does llama.cpp (xllamacpp "
            f"{xllamacpp.__version__}) support its architecture and chat template, and is there enough memory?"
        ) from None

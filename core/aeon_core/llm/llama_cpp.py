"""A GGUF model in this process, by llama.cpp (Decision 1): no key, no server, no address that others could reach."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import struct
import tempfile
import threading
import weakref
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from aeon_core.errors import LLMError, ModelUnavailableError
from aeon_core.installation import missing_extra
from aeon_core.json_safe import NotJsonSafeError, json_safe
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ToolCallDict
from aeon_core.llm.chat_completions import (
    CompletionReader,
    chat_messages,
    chat_tool,
    with_call_in_text,
    with_tools_in_prompt,
)
from aeon_core.llm.connect import Endpoint, check_timeout
from aeon_core.llm.errors import one_line
from aeon_core.llm.wire import ToolNames
from aeon_core.regular_file import open_regular

MAGIC = b"GGUF"

_FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_MAX_ENTRIES = 100_000
_MAX_KEPT = 1_000_000
_MAX_SKIPPED = 1 << 40
_TEMPLATE = "tokenizer.chat_template"


class GgufError(ValueError):
    """The file is no GGUF file that can be used; the message says why."""


@dataclass(frozen=True)
class GgufHeader:
    """What a model's file says of the model."""

    context_length: int | None
    """Tokens that the model was trained for, None if the file does not say."""

    knows_tools: bool
    """Whether a chat template of the model renders tools."""


def read_gguf_header(path: Path) -> GgufHeader:
    """Return what the file's header says. Raises GgufError for another kind of file or a cut one, OSError as usual."""
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
    length = entries.get(f"{architecture}.context_length")
    templates = [value for key, value in entries.items() if key.startswith(_TEMPLATE) and isinstance(value, str)]
    return GgufHeader(
        context_length=length if isinstance(length, int) and length > 0 else None,
        knows_tools=any("tools" in template for template in templates),
    )


def _value(file: BinaryIO, kind: int) -> Any:
    """Return a scalar or a text; an array is skipped and None."""
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
    # Beyond the end of the file the next read fails.
    if length > _MAX_SKIPPED:
        raise GgufError("its header is incomplete")
    file.seek(length, 1)


class CallCut(Exception):
    """The call was left behind, since the engine was closed."""


class Engine:
    """An object that is made when first needed and streams the answer to one request after another.

    Each call runs on a thread of its own. It is no daemon, since one that comes back from native code while Python
    ends would abort the process: it ends by itself, at its next event, when it is cut or the main thread is done.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._made: Any = None
        self._calls: set[_Call] = set()
        self._closings = 0

    def events(self, run: Callable[[Any, Callable[[Any], bool]], None], timeout: float) -> Generator[Any, None, None]:
        """Yield what `run(made, take)` hands to `take`, which returns whether to stop.

        Raises TimeoutError after `timeout` seconds of silence (making the object does not count), CallCut after
        `close()`, and what making and running raise.
        """
        call, wait = _Call(), None
        with self._lock:
            self._calls.add(call)
        try:
            threading.Thread(target=self._run, args=(call, run), name="aeon-in-process", daemon=False).start()
            while True:
                try:
                    kind, item = call.items.get(timeout=wait)
                except queue.Empty:
                    raise TimeoutError from None
                if kind == "ended":
                    return
                if kind == "failed":
                    raise item
                if kind == "loaded":
                    wait = timeout
                else:
                    yield item
        finally:
            call.cut()
            with self._lock:
                self._calls.discard(call)

    def close(self) -> None:
        """Cut the calls in flight and let go of the object; from any thread, any number of times."""
        with self._lock:
            self._closings += 1
            self._made = None
            calls = list(self._calls)
        for call in calls:
            call.cut()

    def _run(self, call: _Call, run: Callable[[Any, Callable[[Any], bool]], None]) -> None:
        try:
            made = self._object()
            if not call.is_over():
                call.items.put(("loaded", None))
                run(made, call.take)
            call.items.put(("ended", None))
        except Exception as error:
            # Its frames would keep the object, and the memory it holds.
            call.items.put(("failed", error.with_traceback(None)))

    def _object(self) -> Any:
        with self._loading:
            with self._lock:
                made, closings = self._made, self._closings
            if made is None:
                made = self._make()
                with self._lock:
                    if self._closings == closings:
                        self._made = made
            return made


class _Call:
    """What one call sends from its thread to the caller: `loaded`, each `event`, and how it `ended` or `failed`."""

    def __init__(self) -> None:
        self.items: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._is_cut = False

    def take(self, event: Any) -> bool:
        self.items.put(("event", event))
        return self.is_over()

    def cut(self) -> None:
        self._is_cut = True
        self.items.put(("failed", CallCut()))

    def is_over(self) -> bool:
        return self._is_cut or not threading.main_thread().is_alive()


MAX_CONTEXT = 8192
"""Tokens that request and reply may have together at most: the memory for a model's whole context can be many GB."""

_BATCH = 128
_MAX_QUOTED = 160
_GUIDANCE = {"whitespace_flexible": False, "coerce_one_of": True, "lenient": True}
"""How the grammar is made: no endless blanks, a near form of what it cannot say."""


class LlamaCppModel(LLMAdapter):
    """The model in a GGUF file. It is loaded at the first call and answers the same request in the same words.

    `context_window` is what the model was trained for, at most MAX_CONTEXT tokens. A request's `effort` is not sent:
    llama.cpp has no option for it that every model's template knows. Raises ModelUnavailableError (exit 3) for a
    missing package and for a file that is missing, unreadable or no GGUF; UsageError for a bad time-out.
    """

    def __init__(self, path: str, *, timeout: float = 120.0) -> None:
        if find_spec("xllamacpp") is None:
            raise ModelUnavailableError(missing_extra(f"llama-cpp:{path[:80]}", "local").message)
        file = Path(path).expanduser().absolute()
        header = _header(file)
        self._place = Endpoint("llama-cpp", path, "llama-cpp://in-process", None, "", "", check_timeout(timeout))
        self.model: str = self._place.model
        self.context_window: int | None = min(header.context_length or MAX_CONTEXT, MAX_CONTEXT)
        self._knows_tools = header.knows_tools
        self._engine = Engine(partial(_load, file, self.context_window, self.model))
        self._released = weakref.finalize(self, self._engine.close)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError (core FR-048), retryable or not.

        A schema is enforced by a grammar while the model writes; one that llama.cpp makes no grammar of is not.
        """
        names = ToolNames(request.tools)
        params = self._built(request, names)
        with contextlib.closing(self._events(params)) as events:
            reply = CompletionReader(self._place, request, names).stream(events)
        if "tools" not in params:
            reply = with_call_in_text(reply, request.tools)
        # llama.cpp draws its ids at random.
        calls: list[ToolCallDict] = [{**call, "id": f"call_{n}"} for n, call in enumerate(reply.tool_calls, 1)]
        return reply.model_copy(update={"model": self.model, "tool_calls": calls})

    def close(self) -> None:
        """Release the model, and abandon a call in flight; called from any thread. A later call loads it again.

        The call returns at once. The work behind it ends after the token or the part of the prompt it is at.
        """
        self._engine.close()

    def _built(self, request: LLMRequest, names: ToolNames) -> dict[str, Any]:
        # llama.cpp takes no grammar beside native tools.
        sent = request if self._knows_tools and request.schema is None else with_tools_in_prompt(request)
        try:
            params: dict[str, Any] = {
                "messages": chat_messages(sent, names),
                "max_tokens": request.max_tokens,
                "temperature": 0,
                # A prompt that is read on from an earlier one's state may give other last digits.
                "cache_prompt": False,
                "stream": True,
                "stream_options": {"include_usage": True},
                "return_progress": True,
            }
            if sent.tools:
                params["tools"] = [chat_tool(tool, names) for tool in sent.tools]
                if sent.forced_tool is not None:
                    params["tool_choice"] = "required"
            if request.schema is not None:
                params["json_schema"] = {**request.schema, "x-guidance": _GUIDANCE}
            built: dict[str, Any] = json_safe(params)
        except (NotJsonSafeError, LookupError, TypeError, AttributeError) as error:
            why = one_line(f"{type(error).__name__}: {error}", self._place)[:_MAX_QUOTED]
            raise LLMError(f"{self.model}: the request cannot be written as JSON: {why}") from None
        return built

    def _events(self, params: dict[str, Any]) -> Generator[Any, None, None]:
        """Yield the chunks of the reply. Raises LLMError."""

        def run(server: Any, take: Callable[[Any], bool]) -> None:
            server.handle_chat_completions(_with_grammar(params), take)

        try:
            yield from self._engine.events(run, self._place.timeout)
        except CallCut:
            raise LLMError(f"{self.model}: the call was interrupted because the adapter was closed") from None
        except TimeoutError:
            raise LLMError(f"{self.model}: nothing from the model within {self._place.timeout:g} s", True) from None
        except ImportError as error:
            raise LLMError(f"{self.model}: a package is missing: {error}; reinstall Aeon", exit_code=3) from None
        except (ValueError, RuntimeError) as error:
            why = one_line(str(error), self._place)[:_MAX_QUOTED]
            raise LLMError(f"{self.model}: llama.cpp rejected the request: {why}") from None


def _with_grammar(params: dict[str, Any]) -> dict[str, Any]:
    """Return the request with its schema as a grammar: `response_format` fails some replies that meet the schema."""
    import xllamacpp

    if "json_schema" not in params:
        return params
    rest = {key: value for key, value in params.items() if key != "json_schema"}
    return {**rest, "grammar": xllamacpp.json_schema_to_grammar(params["json_schema"])}


def _header(file: Path) -> GgufHeader:
    shown = repr(str(file)[:200])
    try:
        return read_gguf_header(file)
    except FileNotFoundError:
        raise ModelUnavailableError(f"the model file {shown} does not exist; use the path of a GGUF file") from None
    except GgufError as error:
        raise ModelUnavailableError(f"cannot use the model file {shown}: {error}; use a complete GGUF file") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ModelUnavailableError(f"cannot read the model file {shown}: {why}; use a GGUF file") from None


def _load(file: Path, context: int, model: str) -> Any:
    """Return llama.cpp's server object for the model. Raises LLMError (exit 3) where it cannot be loaded."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = context
    params.n_parallel = 1
    # A call that was left behind ends only between two parts of the prompt.
    params.n_batch = _BATCH
    # Python is blocked while it loads: the weights are read when they are first needed instead.
    params.warmup = False
    params.cache_ram_mib = 0
    # It writes to the terminal by itself otherwise, below Python's streams.
    params.verbosity = -1
    params.ui = False
    params.endpoint_slots = False
    params.api_keys = [secrets.token_urlsafe()]
    # It insists on listening. A socket whose folder is gone when it is ready can be reached by nobody.
    with tempfile.TemporaryDirectory(prefix="aeon-") as folder:
        params.hostnames = [f"{folder}/s.sock"]
        try:
            return xllamacpp.Server(params)
        except RuntimeError:
            raise LLMError(
                f"{model}: cannot load the model file; is it complete, does llama.cpp (xllamacpp "
                f"{xllamacpp.__version__}) support its architecture and chat template, and is there enough memory?",
                exit_code=3,
            ) from None

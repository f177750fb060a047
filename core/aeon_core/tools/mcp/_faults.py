"""What may go wrong with an MCP server, in words; the SDK's errors are read here without its types."""

from __future__ import annotations

from aeon_core.tools.mcp._text import Words, words
from aeon_core.tools.mcp.settings import McpServer

CONNECTION_CLOSED = -32000
"""The code of the SDK's error for an answer that did not come before the connection ended."""


class Unusable(Exception):
    """A server cannot be started or reached; the message is why, and what to do."""


class Refused(Exception):
    """A server answered a call with an error, or not as it should; the message is what it says."""


class SessionLost(Refused):
    """An HTTP server did not take the call, since it does not know our session any more."""


class Ended(Exception):
    """The connection ended during a call; the message is what is known of why, or empty."""


def why_unusable(server: McpServer, error: BaseException, status: int | None, said: Words) -> str:
    """Return why a server could not be started; `status` is the HTTP status it refused with, None for none."""
    error = innermost(error)
    if isinstance(error, Unusable):
        return str(error)
    if status is not None:
        key = "headers" if status in (401, 403) else "url"
        return f"it refused with HTTP status {status}; correct its {key!r}"
    if isinstance(error, TimeoutError):
        return f"it did not tell its tools within {server.start_timeout:g} s; see 'start_timeout'"
    if server.command is not None and isinstance(error, OSError):
        return _not_started(server.command, error)
    code = getattr(error, "code", None)
    if server.command is not None and code == CONNECTION_CLOSED:
        return "it ended before it had told its tools; correct its 'command', 'args' or 'env'"
    if server.url is not None and code is None:
        return f"it cannot be reached: {said.of(error)}; is it running, and is its 'url' right?"
    return f"it does not speak MCP as expected: {said.of(error)}"


def innermost(error: BaseException) -> BaseException:
    """Return the first error in nested groups: the SDK's task groups wrap what happened."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _not_started(command: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"its command {words(command)!r} was not found; install it or correct 'command'"
    return f"its command {words(command)!r} cannot be started: {error.strerror}; correct 'command'"

"""Aeon's errors, in one hierarchy; each message says what is wrong and what to do (Decision 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal


class AeonError(Exception):
    """Base of every error Aeon raises on purpose.

    `context` holds what is known about the place (step_id, tool_name, error_type, …); `exit_code` is that of a command
    which the error ends.
    """

    exit_code: int = 1

    def __init__(self, message: str, *, exit_code: int | None = None, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context: dict[str, Any] = {key: value for key, value in context.items() if value is not None}
        if exit_code is not None:
            self.exit_code = exit_code

    def as_dict(self) -> dict[str, Any]:
        """Return the error as plain JSON for journal and result: error_type, message and the context."""
        return {"error_type": type(self).__name__, "message": self.message, **self.context}


def reason_of(error: BaseException) -> str:
    """Return why the system refused something: what an OSError says without its file, else the error's own text."""
    return getattr(error, "strerror", None) or str(error)


def innermost(error: BaseException) -> BaseException:
    """Return the first error in nested groups, since task groups wrap errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class UsageError(AeonError):
    """Bad arguments, configuration, plan file or journal: nothing was run."""

    exit_code: int = 2


class ModelUnavailableError(AeonError):
    """No usable model: none configured, missing key, credentials or package."""

    exit_code: int = 3


class LLMError(AeonError):
    """A model call failed.

    `retryable` says whether another attempt may succeed; `retry_after` is the wait that the provider asks for, in
    seconds; `status_code` the HTTP status, if any; `usage` the tokens that the failed call used. 401, 403 and 404 end a
    run with exit 3. In the context, `context_too_long=True` says that the request does not fit the model, `unsent=True`
    that it never reached a server, and `unavailable=True` that the server may be starting, or that the other runs of a
    batch used up its rate.
    """

    def __init__(
        self,
        message: str,
        retryable: bool = False,
        retry_after: float | None = None,
        *,
        status_code: int | None = None,
        usage: Mapping[str, Any] | None = None,
        exit_code: int | None = None,
        **context: Any,
    ) -> None:
        super().__init__(message, exit_code=exit_code, status_code=status_code, **context)
        self.usage: dict[str, int] | None = dict(usage) if usage is not None else None
        self.retryable = retryable
        self.retry_after = retry_after
        self.status_code = status_code
        if status_code in (401, 403, 404):
            self.exit_code = 3


class ToolError(AeonError):
    """A tool could not be registered, or its invocation failed."""


class ValidationError(AeonError):
    """Something does not have the structure it must have."""


def invalid(problems: list[str], what: str = "") -> ValidationError:
    """Return the error for these `problems`, which names the first one after `what`."""
    return ValidationError(f"{what}{problems[0]}", problems=problems)


class SupervisorError(AeonError):
    """A repair failed: two attempts, or a final refusal (core FR-051)."""


class MemoryStoreError(AeonError):
    """A memory store refused an operation."""


class RunEnding(AeonError):
    """Ends a run wherever it is raised; no step handles it."""


class JournalError(RunEnding):
    """The journal cannot be written, or a line of it cannot be read."""


class ReplayMismatchError(RunEnding):
    """The kernel emitted or requested something other than what was recorded."""


class UnconfirmedCall(RunEnding, UsageError):
    """Only a journal, which anyone may have written, says that the next call may be made: it was not, nor recorded."""


class RunAborted(RunEnding):
    """A person ended the run."""

    status: ClassVar[Literal["aborted"]] = "aborted"

"""Records the app as asciinema casts: a script presses keys while a run's model replies piece by piece.

The run and the app are the real ones. Time is simulated: a frame is written after each action and lasts as long as the
script says, so that the same script always gives the same cast.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import TextArea

from aeon_core.errors import AeonError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse

START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PIECE_CHARACTERS = 60
PIECE_SECONDS = 0.12
KEY_SECONDS = 0.5
GUARD_SECONDS = 0.7
MOST_PIECES = 2_000
SIZE = (120, 36)


@dataclass
class CastClock:
    """The time of a cast, in seconds from its first frame, which the run and the screens read as the time of day."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        return START + timedelta(seconds=self.seconds)

    def time_ns(self) -> int:
        """Return the time of day in nanoseconds, for the journal."""
        return int(self.now().timestamp() * 1_000_000) * 1_000

    def perf_counter(self) -> float:
        """Return the seconds from which durations are computed."""
        return self.seconds

    strftime = staticmethod(time.strftime)
    gmtime = staticmethod(time.gmtime)


class Gate:
    """Lets each waiting model send one piece of its reply when the recorder asks for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._permits = self._waiting = 0
        self._open = False

    def wait(self) -> None:
        """Wait until the gate opens; called on a model call's thread."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._permits > 0 or self._open)
            self._permits -= not self._open
            self._waiting -= 1

    @property
    def waiting(self) -> int:
        """The number of waiting models."""
        return self._waiting

    def let_through(self) -> None:
        """Let each waiting model send one piece."""
        with self._changed:
            self._permits += self._waiting
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._permits == 0, 10)

    def open(self) -> None:
        """Stay open from now on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()


class SteppedModel(LLMAdapter):
    """Sends another model's replies in pieces, each when the gate opens."""

    def __init__(self, inner: LLMAdapter, gate: Gate) -> None:
        self.model, self.simulated = inner.model, inner.simulated
        self._inner, self._gate = inner, gate

    def complete(self, request: LLMRequest) -> LLMResponse:
        on_delta, request.on_delta = request.on_delta, None
        response = self._inner.complete(request)
        for start in range(0, len(response.text), PIECE_CHARACTERS):
            self._gate.wait()
            if on_delta is not None:
                on_delta(response.text[start : start + PIECE_CHARACTERS])
        self._gate.wait()
        return response

    def close(self) -> None:
        self._inner.close()


@contextmanager
def recorded_world(clock: CastClock, gate: Gate) -> Iterator[None]:
    """Make runs use the cast's clock, consecutive ids, and the gate."""
    from aeon_core.effects import outcomes
    from aeon_core.journal import writer
    from aeon_core.runs import factory
    from aeon_tui.sessions import slowed_model

    numbers = iter(range(1, 100))
    connect_model = factory.connect_model
    changes: list[tuple[Any, str, Any]] = [
        (writer, "time", clock),
        (writer, "new_run_id", lambda: f"{clock.now():%Y%m%d-%H%M%S}-c0ffe{next(numbers)}"),
        (factory, "connect_model", lambda config: SteppedModel(connect_model(config), gate)),
        (outcomes, "time", clock),
        (slowed_model, "SlowedModel", lambda model: model),
    ]
    before = [getattr(module, name) for module, name, _ in changes]
    for module, name, replacement in changes:
        setattr(module, name, replacement)
    try:
        yield
    finally:
        gate.open()
        for (module, name, _), value in zip(changes, before, strict=True):
            setattr(module, name, value)


@dataclass
class Cast:
    """The frames of one recording, and the pictures taken during it."""

    pilot: Pilot[Any]
    clock: CastClock
    gate: Gate
    folder: Path
    name: str
    title: str
    picture: Callable[[Pilot[Any]], Any]
    quiet: bool = False
    """Whether recording is paused; no time passes then."""
    _events: list[tuple[float, str]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    async def frame(self, seconds: float) -> None:
        """Write what has changed on screen as a frame that lasts this many seconds."""
        await self.settle()
        if self.quiet:
            return
        lines = _screen_lines(self.pilot)
        changed = [
            f"\x1b[{number};1H{line}\x1b[0m"
            for number, line in enumerate(lines, 1)
            if len(self._lines) != len(lines) or self._lines[number - 1] != line
        ]
        if changed:
            start = "\x1b[?25l\x1b[2J" if not self._lines else ""
            self._events.append((round(self.clock.seconds, 3), start + "".join(changed)))
            self._lines = lines
        self.clock.seconds += seconds

    async def settle(self) -> None:
        """Wait until every model waits at the gate, every question waits for an answer, and the screen shows it."""
        app: Any = self.pilot.app
        for screen in app.screen_stack:
            if hasattr(screen, "_clock"):
                screen._clock = self.clock.now
        for _ in range(1_000):
            await self.pilot.pause()
            if self.gate.waiting >= sum(each.waiting is None for each in app.sessions.running):
                break
            await asyncio.sleep(0.005)
        for _ in range(3):
            await self.pilot.pause(0.02)

    async def press(self, *keys: str, seconds: float = KEY_SECONDS) -> None:
        """Press keys, with a frame after each."""
        await asyncio.sleep(GUARD_SECONDS)  # a question that has just appeared ignores keys
        for key in keys:
            await self.pilot.press(key)
            await self.frame(seconds)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something that needs no model. Raises AeonError if it never happens."""
        for _ in range(500):
            if holds():
                return
            await self.pilot.pause(0.02)
        raise AeonError(f"the cast {self.name!r} waits for something that never comes")

    async def type(self, text: str) -> None:
        """Type a text."""
        for letter in text:
            await self.pilot.press("space" if letter == " " else letter)
            await self.frame(0.05)

    async def run_until(self, holds: Callable[[], object], seconds: float = PIECE_SECONDS) -> None:
        """Let the models reply, one frame per piece, until a condition holds. Raises AeonError if it never does."""
        for _ in range(MOST_PIECES):
            await self.settle()
            if holds():
                return
            self.gate.let_through()
            await self.frame(seconds)
        raise AeonError(f"the cast {self.name!r} never gets there")

    async def take_picture(self, name: str = "") -> None:
        """Write what is on screen as SVG."""
        await self.settle()
        (self.folder / f"{name or self.name}.svg").write_text(self.picture(self.pilot), encoding="utf-8")

    def write(self) -> Path:
        """Write the cast in asciinema's format, version 2."""
        size = self.pilot.app.size
        header = {
            "version": 2,
            "width": size.width,
            "height": size.height,
            "timestamp": int(START.timestamp()),
            "title": self.title,
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/sh"},
        }
        lines = [json.dumps(header), *(json.dumps([at, "o", text], ensure_ascii=False) for at, text in self._events)]
        target = self.folder / f"{self.name}.cast"
        target.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return target


def _screen_lines(pilot: Pilot[Any]) -> list[str]:
    """Return the rows of the screen, dialogs on top, as text with escape sequences for colours."""
    app = pilot.app
    console = Console(
        width=app.size.width, file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    update: Any = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens, simplify=True)
    return ["".join(strip.render(console) for strip in row) for row in update.strips]


async def _plan_drawn(cast: Cast) -> None:
    """A plan grows while the model writes it, is executed, and is refined; proposed changes are drawn in advance."""
    app: Any = cast.pilot.app
    await cast.frame(0.5)
    app.action_demo()
    await cast.run_until(lambda: _session(cast) is not None and _writes(cast, "plan"))
    for _ in range(6):
        cast.gate.let_through()
        await cast.frame(PIECE_SECONDS)
    await cast.take_picture()
    await cast.run_until(lambda: _waits(cast))
    await cast.frame(3)


async def _decision(cast: Cast) -> None:
    """A person reads a question, answers the open question in it, and starts another pass."""
    app: Any = cast.pilot.app
    app.action_demo()
    cast.quiet = True
    await cast.run_until(lambda: _waits(cast))
    cast.quiet = False
    await cast.frame(2)
    await cast.take_picture()
    await cast.press("enter", seconds=0.8)
    await cast.type("invoices of one shop, read by its accountant")
    await cast.press("enter", seconds=1.5)
    await cast.press("a", seconds=1)
    await cast.run_until(lambda: _waits(cast) and _session(cast).waiting.pass_number == 2)
    await cast.frame(3)


async def _fork(cast: Cast) -> None:
    """A fork starts at the end of the first pass and runs next to its parent."""
    from aeon_tui.screens.fork import ForkDialog

    app: Any = cast.pilot.app
    app.action_demo()
    cast.quiet = True
    await cast.run_until(lambda: _waits(cast))
    await cast.press("a")
    await cast.run_until(lambda: _waits(cast) and _session(cast).waiting.pass_number == 2)
    await cast.press("a")
    await cast.run_until(lambda: not _session(cast).running)
    cast.quiet = False
    await cast.frame(1)
    await cast.press("left_square_bracket", "left_square_bracket", seconds=1)
    parent = _session(cast)
    await cast.press("F", seconds=0)
    await cast.until(lambda: isinstance(app.screen, ForkDialog) and app.screen.query_one(TextArea).text)
    await cast.frame(1.5)
    await cast.press("ctrl+s", seconds=1)
    await cast.until(lambda: _session(cast) is not parent)
    for _ in range(30):
        cast.gate.let_through()
        await cast.frame(PIECE_SECONDS)
    await cast.take_picture()
    await cast.run_until(lambda: _waits(cast))
    await cast.frame(3)


SCRIPTS = {
    "plan-drawing": ("A plan draws itself while the model writes it", _plan_drawn),
    "decision": ("A question is answered, and another pass started", _decision),
    "fork-beside-parent": ("A fork of the first pass runs next to its parent", _fork),
}
"""The title and the script of each recording, by name. Each also gives a picture of that name."""


async def record_casts(folder: Path, picture: Callable[[Pilot[Any]], str]) -> list[Path]:
    """Record every script into the folder, and return the files. Runs are stored below the working directory."""
    from aeon_tui.app import AeonApp
    from tools.pictures import today

    made = []
    for name, (title, script) in SCRIPTS.items():
        clock, gate = CastClock(), Gate()
        with recorded_world(clock, gate):
            app = AeonApp(Path("casts", name), today=today)
            async with app.run_test(size=SIZE) as pilot:
                cast = Cast(pilot, clock, gate, folder, name, title, picture)
                await script(cast)
                made += [cast.write(), folder / f"{name}.svg"]
                gate.open()
                app.sessions.abort()
                app.sessions.wait(10)
    return made


def _session(cast: Cast) -> Any:
    app: Any = cast.pilot.app
    return next(reversed(app.sessions.all), None)


def _waits(cast: Cast) -> bool:
    session = _session(cast)
    return session is not None and session.waiting is not None


def _writes(cast: Cast, purpose: str) -> bool:
    return bool(_session(cast).stream.purpose == purpose and _session(cast).stream.text)

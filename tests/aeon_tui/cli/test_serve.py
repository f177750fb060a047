"""The app in a browser: on this machine alone, for the page that was served here alone, and ended at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError, web

from aeon_tui.cli.serve import command
from aeon_tui.platform.web_server import AppServer
from tests.aeon_core.journal.build import started, write
from tests.aeon_tui.cli.conftest import Cli, environment
from tests.sampling import sample
from tests.waiting import PATIENCE, wait_until
from tools.web_pictures import browser, chromium

pytestmark = pytest.mark.usefixtures("default_signals")


@dataclass
class Served:
    """A server in a process group of its own."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def alone(self) -> bool:
        """Whether no process of the group is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "aeon_tui", "serve", "--port", str(port), "--runs-dir", "kept"],
        env=environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"aeon-tui: the app is at http://127.0.0.1:{port} · press Ctrl-C to stop\n"
        wait_until(lambda: answers(port))
        yield Served(process, port)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def drawn(socket: ClientWebSocketResponse, text: str) -> None:
    """Wait until the app has drawn the text."""
    seen = b""
    async with asyncio.timeout(PATIENCE):
        while text.encode() not in seen:
            message = await socket.receive()
            assert message.type is WSMsgType.BINARY, message
            seen += message.data


def test_the_page_is_served_at_the_requested_host_and_ctrl_c_ends_it_at_once(served: Served) -> None:
    for host in ("127.0.0.1", "localhost"):
        code, page = get(served.url.replace("127.0.0.1", host))
        assert code == 200
        assert f'data-session-websocket-url="ws://{host}:{served.port}/ws"' in page
        assert "aeon-tui" in page
    os.killpg(served.process.pid, signal.SIGINT)
    out, err = served.process.communicate(timeout=PATIENCE)
    assert (served.process.returncode, out, err) == (0, "", "")
    assert served.alone


async def test_no_page_but_the_one_served_opens_the_app(served: Served) -> None:
    elsewhere: tuple[dict[str, str], ...] = ({"Host": "elsewhere.example"}, {"Origin": "http://elsewhere.example"})
    for headers in elsewhere:
        assert get(served.url, **headers)[0] == 403, headers
    origins = ({"Origin": origin} for origin in ("null", "http://127.0.0.1:1", "http://127.0.0.1"))
    for headers in ({}, *origins, *elsewhere):
        async with ClientSession() as session:
            with pytest.raises(WSServerHandshakeError) as refused:
                await session.ws_connect(f"{served.url}/ws", headers=headers)
        assert refused.value.status == 403, headers


async def test_a_tab_shows_the_runs_and_takes_keys(served: Served) -> None:
    write(Path("kept"), started())
    url = f"{served.url}/ws?width=100&height=30"
    async with ClientSession() as session, session.ws_connect(url, origin=served.url) as tab:
        await drawn(tab, "interrupted")
        await tab.send_json(["stdin", "q"])
        async with asyncio.timeout(PATIENCE):
            while (message := await tab.receive()).type is WSMsgType.BINARY:
                pass
    assert message.type is WSMsgType.CLOSE
    assert served.process.poll() is None


@pytest.mark.exhaustive
@pytest.mark.skipif(chromium() is None, reason="there is no Chromium")
def test_a_browser_shows_the_app_and_contacts_no_other_server(served: Served) -> None:
    write(Path("kept"), started())
    seen, asked, problems = bytearray(), [], []
    with browser(str(chromium())) as chrome:
        page = chrome.new_page(viewport={"width": 1000, "height": 600})
        page.on("websocket", lambda tab: tab.on("framereceived", lambda data: seen.extend(_bytes(data))))
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(served.url)
        wait_until(lambda: page.title() == "aeon-tui" and b"interrupted" in seen)
        page.wait_for_function(COLOURS_PAINTED)
        page.keyboard.press("?")
        wait_until(lambda: page.title() and b"K changes them" in seen, lambda: seen.decode(errors="replace"))
    assert {url.partition("/static/")[0].rstrip("/") for url in asked if "data:" not in url} == {served.url}
    assert problems == []


COLOURS_PAINTED = """() => {
  const layer = document.querySelector("canvas.xterm-text-layer");
  const data = layer && layer.width && layer.getContext("2d").getImageData(0, 0, layer.width, layer.height).data;
  return data && new Set(new Uint32Array(data.buffer)).size > 20;
}"""


def _bytes(data: bytes | str) -> bytes:
    return data if isinstance(data, bytes) else data.encode()


@pytest.mark.parametrize("number", sample([signal.SIGTERM, signal.SIGINT, signal.SIGKILL]))
async def test_no_app_outlives_the_server(served: Served, number: signal.Signals) -> None:
    async with ClientSession() as session, session.ws_connect(f"{served.url}/ws", origin=served.url) as tab:
        await drawn(tab, "Runs")
        served.process.send_signal(number)
        while (await tab.receive()).type in (WSMsgType.BINARY, WSMsgType.TEXT):
            pass  # the browser answers the server's goodbye
        await asyncio.to_thread(served.process.wait, PATIENCE)
        wait_until(lambda: served.alone)


async def test_an_app_that_does_not_react_is_disconnected_when_the_server_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def tab() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()  # for the app to end

    monkeypatch.setattr("aeon_tui.platform.web_server.ENDING_SECONDS", 0)
    server, session = AppServer("true", "127.0.0.1", 8000), asyncio.create_task(tab())
    server._sessions.add(session)
    await asyncio.sleep(0)
    await server.on_shutdown(web.Application())
    await asyncio.wait({session}, timeout=PATIENCE)
    assert session.cancelled()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--host", "0.0.0.0"),
            "--host '0.0.0.0' is not local to this machine, and anyone who can reach this address can start",
        ),
        (("--host", "example.org"), "to allow that, add --expose"),
        (("--port", "0"), "--port must be a whole number from 1 to 65535; got '0'"),
        (("--port", "99999999999"), "--port must be a whole number from 1 to 65535; got '99999999999'"),
        (("--port", "0000001234567"), "--port must be a whole number from 1 to 65535; got '0000001234567'"),
        (("--port", "http"), "--port must be a whole number from 1 to 65535; got 'http'"),
        (("--config", "none.yml"), "cannot read the config file 'none.yml'"),
    ],
)
def test_a_serve_error_is_one_line(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    done = cli("serve", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


def test_a_port_that_is_taken_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cli("serve", "--port", str(port))
    assert done.code == 2
    assert done.err == (
        f"aeon-tui: cannot serve the app on '127.0.0.1', port {port}: Address already in use; "
        "choose another with --host and --port\n"
    )


def test_a_missing_package_is_named_with_its_install_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "aeon_tui.platform.web_server", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = cli("serve", "--port", str(port))
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "pip install 'aeon-tui[serve]'" in done.err


def test_an_exposed_address_causes_a_warning(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "aeon_tui.platform.web_server.AppServer.serve", lambda server, debug: served.append((server.host, server.port))
    )
    with socket.create_server(("0.0.0.0", 0)) as free:
        port = free.getsockname()[1]
    done = cli("serve", "--host", "0.0.0.0", "--port", str(port), "--expose")
    assert (done.code, served) == (0, [("0.0.0.0", port)])
    assert done.err.startswith("warning: anyone who can reach this address can start runs and tools as you")


def test_the_apps_options_survive_the_shell_and_another_folder(tmp_path: Path) -> None:
    args = Namespace(project_root=None, runs_dir="my $(runs)", config="~/c.yml", debug=True)
    parts = shlex.split(command(args))
    assert parts[1:4] == ["-P", "-m", "aeon_tui"]
    home = str(Path("~/c.yml").expanduser())
    assert parts[4:] == ["--runs-dir", str(tmp_path / "my $(runs)"), "--config", home, "--debug"]

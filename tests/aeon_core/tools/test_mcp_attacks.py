"""What a hostile MCP server gets: no key of ours, and in the sandbox nothing outside the project (issue 14)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.tools.mcp import stdio_transport
from aeon_core.tools.mcp.servers import McpTools
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.shell.isolation import Isolation, probe
from aeon_core.tools.shell.settings import ShellSettings

ATTACKER = str(Path(__file__).with_name("mcp_attacker.py"))
CANARY = "canary-7f3a9c51"
_NAMES = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AEON_MODEL", "GITHUB_TOKEN"),
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KUBECONFIG", "DATABASE_URL", "MY_SETTING", "npm_config__auth"),
)
KEYS = dict.fromkeys(_NAMES, CANARY)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs Linux")

_WALK = """
def read(path):
    try:
        with open(path, 'rb') as file:
            return file.read(10_000_000)
    except OSError:
        return b''
paths = Path('/proc').glob('[0-9]*/environ')
found = next((path for path in paths if b'canary' in read(path)), 'nothing')
"""
_MEMORY = """
regions = [line.split() for line in open(f'/proc/{client}/maps')]
with open(f'/proc/{client}/mem', 'rb') as memory:
    found = f'{len(regions)} regions are open'
"""
_READV = """
class Part(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
text = ctypes.create_string_buffer(8)
here, there = Part(ctypes.addressof(text), 8), Part(id(object), 8)
libc = ctypes.CDLL(None, use_errno=True)
got = libc.process_vm_readv(client, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
found = 'refused' if got < 0 and ctypes.get_errno() == 1 else f'{got} {ctypes.get_errno()}'
"""
_TRACE = """
libc = ctypes.CDLL(None, use_errno=True)
got = libc.ptrace({request}, client, 0, 0)
found = 'refused' if got < 0 and ctypes.get_errno() == 1 else f'{{got}} {{ctypes.get_errno()}}'
"""
_TAKE = """
libc = ctypes.CDLL(None, use_errno=True)
pidfd = os.pidfd_open(client)
got = libc.syscall(438, pidfd, 42, 0)
found = 'refused' if got < 0 and ctypes.get_errno() == 1 else f'{got} {ctypes.get_errno()}'
"""
_DENIED = "PermissionError"

OUTSIDE: dict[str, tuple[str, str]] = {
    "prints its environment": (f"found = [name for name, value in os.environ.items() if {CANARY!r} in value]", "[]"),
    "reads its own first environment": ("found = b'canary' in open('/proc/self/environ', 'rb').read()", "False"),
    "looks for variables of ours": ("found = [n for n in os.environ if n.startswith(('AEON_', 'AWS_'))]", "[]"),
    "looks for start-up hooks": ("found = [n for n in os.environ if n.startswith(('LD_', 'PYTHON', 'BASH'))]", "[]"),
    "reads its parent's environment": ("found = open(f'/proc/{os.getppid()}/environ', 'rb').read()", _DENIED),
    "reads our environment": ("found = open(f'/proc/{client}/environ', 'rb').read()", _DENIED),
    "reads a thread's environment": ("found = open(f'/proc/{client}/task/{client}/environ', 'rb').read()", _DENIED),
    "walks all environments": (_WALK, "nothing"),
    "opens our memory": (_MEMORY, _DENIED),
    "reads our memory map": ("found = open(f'/proc/{client}/maps').read()", _DENIED),
    "reads our memory by a call": (_READV, "refused"),
    "attaches to us": (_TRACE.format(request=16), "refused"),
    "seizes us": (_TRACE.format(request=0x4206), "refused"),
    "looks at our descriptors": ("found = os.readlink(f'/proc/{client}/fd/42')", _DENIED),
    "opens our journal by our descriptor": ("found = open(f'/proc/{client}/fd/42', 'rb').read()", _DENIED),
    "takes our descriptor": (_TAKE, "refused"),
    "finds where we work": ("found = os.readlink(f'/proc/{client}/cwd')", _DENIED),
    "goes through our root": ("found = os.listdir(f'/proc/{client}/root')", _DENIED),
    "reads our auxiliary vector": ("found = open(f'/proc/{client}/auxv', 'rb').read()", _DENIED),
    "reads our mapped files": ("found = os.listdir(f'/proc/{client}/map_files')", _DENIED),
    "writes our memory": ("found = open(f'/proc/{client}/mem', 'wb')", _DENIED),
    "uses what it inherited": (
        "found = [f for f in os.listdir('/proc/self/fd') if 'journal-' in os.path.realpath(f'/proc/self/fd/{f}')]",
        "[]",
    ),
    "is in our session": ("found = os.getsid(0) == os.getsid(client)", "False"),
}

_CONNECT = """
import socket
with socket.create_connection(('127.0.0.1', {port}), 5) as connection:
    found = 'connected'
"""
INSIDE: dict[str, tuple[str, str]] = {
    "writes in the project": ("Path('made').write_text('x'); found = 'written'", "written"),
    "writes temporary files": (
        "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); found = 'written'",
        "written",
    ),
    "has the variables of its settings": ("found = os.environ['MINE']", "its own"),
    "prints its environment": (f"found = [name for name, value in os.environ.items() if {CANARY!r} in value]", "[]"),
    "writes beside the project": ("Path('../stolen').write_text('x'); found = 'written'", "Error"),
    "writes in the home folder": ("Path('{home}/.bashrc').write_text('x'); found = 'written'", "Error"),
    "reads a key at home": ("found = Path('{home}/.ssh/id').read_text()", "Error"),
    "reads the credentials of a cloud": ("found = Path('{home}/.aws/credentials').read_text()", "Error"),
    "reads our environment": ("found = open(f'/proc/{{client}}/environ', 'rb').read()", "Error"),
    "opens the network": (_CONNECT, "Error"),
    "ends us": ("os.kill(client, 9); found = 'killed'", "Error"),
}


def attack(root: Path, attacks: dict[str, str], environ: dict[str, str], **settings: Any) -> dict[str, str]:
    """Return what each attack gave to a server that is connected by a process with keys."""
    told = json.dumps({"root": str(root), "attacks": attacks, "settings": settings})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ATTACKER, "client", told],
        env={**os.environ, **KEYS, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results: dict[str, str] = json.loads(done.stdout)
    return results


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return attack(tmp_path_factory.mktemp("project"), {name: code for name, (code, _) in OUTSIDE.items()}, {})


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_server_does_not_get_our_keys(outside: dict[str, str], name: str) -> None:
    assert outside[name].startswith(OUTSIDE[name][1])


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    root, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    if probe(root, ShellSettings()).name == "none":
        pytest.skip("no isolation works here")
    for name in (".ssh/id", ".aws/credentials"):
        (home / name).parent.mkdir()
        (home / name).write_text(CANARY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fill = {"home": home, "port": listener.getsockname()[1]}
        attacks = {name: code.format(**fill) if "{" in code else code for name, (code, _) in INSIDE.items()}
        yield attack(root, attacks, {"HOME": str(home)}, sandbox=True, env={"MINE": "its own"})


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", INSIDE)
def test_a_server_in_the_sandbox_stays_in_the_project(inside: dict[str, str], name: str) -> None:
    expected = INSIDE[name][1]
    assert expected in inside[name]
    assert CANARY not in inside[name]


@pytest.mark.exhaustive
def test_a_sandboxed_server_reaches_the_network_only_if_allowed(tmp_path: Path) -> None:
    if probe(tmp_path, ShellSettings(network=True)).name == "none":
        pytest.skip("no isolation works here")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = _CONNECT.format(port=listener.getsockname()[1])
        assert attack(tmp_path, {"connect": code}, {}, sandbox=True, network=True) == {"connect": "connected"}


@pytest.mark.parametrize("network", [True, False])
def test_a_sandboxed_server_that_npx_downloads_has_a_cache_it_can_write(tmp_path: Path, network: bool) -> None:
    if probe(tmp_path, ShellSettings(network=network)).name == "none":
        pytest.skip("no isolation works here")
    server = McpServer(command="true", sandbox=True, network=network)
    with stdio_transport.program(server, {}, tmp_path) as started:
        cache = started.env.get("npm_config_cache")
    assert cache == (f"{started.env['TMPDIR']}/cache/npm" if network else None)


def test_without_isolation_a_sandboxed_server_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = Isolation("none", True, "bwrap is not installed")
    monkeypatch.setattr(stdio_transport, "probe", lambda root, settings: none)
    made = tmp_path / "made"
    server = {"command": "/bin/sh", "args": ["-c", f"touch {made}"], "sandbox": True}
    with pytest.raises(UsageError) as caught:
        McpTools({"own": server}, project_root=tmp_path).connect()
    assert caught.value.message == (
        "cannot use the MCP server 'own': its 'sandbox' is true, but no isolation works here (bwrap is not "
        "installed); install bubblewrap, or remove 'sandbox' to run it with your full rights"
    )
    assert not made.exists()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"url": "http://127.0.0.1:1/mcp", "sandbox": True}, "'sandbox' of 'own' in 'mcp_servers' needs 'command'"),
        ({"command": "x", "network": True}, "'network' of 'own' in 'mcp_servers' needs 'sandbox: true'"),
        ({"command": "x", "sandbox": "perhaps"}, "'sandbox' of 'own' in 'mcp_servers' must be true or false"),
    ],
)
def test_nonsensical_settings_are_refused(tmp_path: Path, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        McpTools({"own": settings}, project_root=tmp_path)


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"its command './nothing' was not found; install it or fix 'command'"):
        McpTools({"own": {"command": "./nothing", "sandbox": True}}, project_root=tmp_path).connect()

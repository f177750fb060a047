"""What a command asks of the kernel: sockets, other processes, mounts, modes of files elsewhere."""

# ruff: noqa: E501  # one attack a line
from __future__ import annotations

import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from aeon_core.tools.shell import launcher
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation, Rung, filter_program
from tests.aeon_core.tools.shell.rungs import RUNGS, said, tool_in

REFUSED = {
    "a socket of a local service": "socket.socket(socket.AF_UNIX)",
    "a datagram socket of one": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "a pair that could be sent elsewhere": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "with flags": "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)",
    "with bits above 32": "call(41, 1 | 1 << 32, 1, 0)",
    "a socket of the virtual machine's host": "socket.socket(40, socket.SOCK_STREAM)",
    "the kernel's ciphers": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "raw packets": "socket.socket(17, socket.SOCK_RAW)",
    "multiprocessing's manager": "multiprocessing.connection.Listener(family='AF_UNIX')",
    "ptrace": "call(101, 0, 0, 0, 0)",
    "memory of another process": "call(310, os.getpid(), 0, 0, 0, 0, 0)",
    "keys": "call(250, 0, -3, 0)",
    "adding a key": "call(248, b'user', b'x', b'y', 1, -3)",
    "io_uring": "call(425, 1, 0)",
    "userfaultfd": "call(323, 0)",
    "mount": "call(165, b'/', b'/tmp', b'', 4096, 0)",
    "open_tree": "call(428, -100, b'/', 1)",
    "fsopen": "call(430, b'tmpfs', 0)",
    "umount": "call(166, b'/tmp', 2)",
    "chroot": "os.chroot('/tmp')",
    "a namespace": "call(272, 0x10000000)",
    "clone with one": "call(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "clone3": "call(435, 0, 88)",
    "bpf": "call(321, 0, 0, 0)",
    "perf": "call(298, 0, 0, -1, -1, 0)",
    "a handle of a file": "call(303, -100, b'/', 0, 0, 0)",
    "by a handle": "call(304, -100, 0, 0)",
    "pidfd_getfd": "call(438, 0, 0, 0)",
    "typing into the terminal": "fcntl.ioctl(0, 0x5412, b'x')",
    "the x32 form": "call(0x40000000 + 39)",
    "a module": "call(313, 0, b'', 0)",
    "the host's name": "socket.sethostname('x')",
    "the clock": "call(227, 0, 0)",
    "the kernel's log": "call(103, 3, 0, 0)",
}
TRY = """
import ctypes, fcntl, multiprocessing.connection, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*map(lambda a: ctypes.c_long(a) if isinstance(a, int) else a, arguments)) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
try:
    {}
    print('done')
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def tool(tmp_path: Path) -> BashTool:
    (tmp_path / "project").mkdir()
    return tool_in("bubblewrap", tmp_path / "project")


def run_python(tool: BashTool, code: str) -> str:
    (tool._root / "code.py").write_text(code)
    return said(tool, f"{sys.executable} code.py")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("rung", RUNGS)
def test_calls_that_reach_outside_are_refused(tmp_path: Path, rung: Rung) -> None:
    tool = tool_in(rung, tmp_path)
    script = "\n".join(TRY.format(code) for code in REFUSED.values())
    found = dict(zip(REFUSED, run_python(tool, script).split("\n"), strict=True))
    assert found == dict.fromkeys(REFUSED, "1") | {"clone3": "38"}


@pytest.mark.parametrize("kind", ["socket.SOCK_STREAM", "socket.SOCK_DGRAM", "socket.SOCK_RAW"])
@pytest.mark.parametrize("family", ["socket.AF_INET", "socket.AF_INET6"])
def test_landlock_without_network_lets_no_packet_out(tmp_path: Path, family: str, kind: str) -> None:
    tool = tool_in("landlock", tmp_path)
    assert run_python(tool, TRY.format(f"socket.socket({family}, {kind})")) == "1"


def test_a_program_that_fails_for_lack_of_a_socket_gets_a_hint_that_there_is_no_network(tmp_path: Path) -> None:
    result = tool_in("landlock", tmp_path).invoke(f"{sys.executable} -c 'import socket; socket.socket()'")
    assert result["exit_code"] == 1
    assert result["notices"][0] == "commands have no network here; a person can allow it in the shell settings"


def test_a_program_that_needs_a_unix_socket_of_its_own_gets_a_hint(tmp_path: Path) -> None:
    manager = f"{sys.executable} -c 'import multiprocessing as m; m.Manager()' 2>&1 | tail -20"
    (notice,) = tool_in("bubblewrap", tmp_path).invoke(manager)["notices"]
    assert notice.startswith("Unix sockets are blocked for commands")
    assert "programs that need such a socket, such as Chromium or Python's multiprocessing.Manager" in notice


@pytest.mark.parametrize("rung", RUNGS)
def test_a_socket_of_a_service_is_out_of_reach_with_the_network_open(tmp_path: Path, rung: Rung) -> None:
    tool = tool_in(rung, tmp_path, network=True)
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as abstract:
        service.bind(str(tmp_path / "s"))
        service.listen()
        abstract.bind(f"\0aeon-{os.getpid()}")
        abstract.listen()
        for address in (str(tmp_path / "s"), f"\0aeon-{os.getpid()}"):
            code = f"import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({address!r})\nprint('reached')"
            result = tool.invoke(
                f"{sys.executable} -c {code!r}"
                if "\0" not in address
                else f"printf %b {repr(code)!r} >x; {sys.executable} x"
            )
            assert "reached" not in result["stdout"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "code",
    [
        "import asyncio; print(asyncio.run(asyncio.sleep(0, 'works')))",
        "import asyncio\nasync def f():\n p = await asyncio.create_subprocess_exec('echo', 'works', stdout=-1)\n print((await p.communicate())[0].decode().strip())\nasyncio.run(f())",
        "import socket; a, b = socket.socketpair(); a.send(b'works'); print(b.recv(9).decode())",
        "import threading; t = threading.Thread(target=print, args=('works',)); t.start(); t.join()",
        "import multiprocessing as m\nif __name__ == '__main__':\n with m.get_context('fork').Pool(2) as p: print(p.map(str, ['works'])[0])",
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('works')",
        "import subprocess; print(subprocess.run(['sh', '-c', 'echo works'], capture_output=True, text=True).stdout)",
        "import tempfile; f = tempfile.NamedTemporaryFile(); print('works')",
        "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t (a)'); c.commit(); print('works')",
        "import mmap; m = mmap.mmap(-1, 4096); print('works')",
    ],
)  # fmt: skip
def test_ordinary_programs_work(tool: BashTool, code: str) -> None:
    assert run_python(tool, code) == "works"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("program", "command", "expected"),
    [
        ("make", "printf 'all: a b\\na b:\\n\\t@echo works\\n' > Makefile; make -sj2 | sort -u", "works"),
        ("node", "node -e 'require(\"child_process\").exec(\"echo works\", (e, o) => console.log(o.trim()))'", "works"),
        ("npm", "echo '{\"name\":\"x\",\"scripts\":{\"t\":\"echo works\"}}' > package.json; npm run -s t", "works"),
        ("cargo", "cargo init -q --vcs none --name x . && cargo run -q --offline", "Hello, world!"),
        ("git", "cd /tmp && git init -q x && cd x && git -c user.name=a -c user.email=b commit -qm works --allow-empty && git log --format=%s", "works"),
        ("go", "go version | cut -c1-2", "go"),
    ],
)  # fmt: skip
def test_ordinary_tools_work(tool: BashTool, program: str, command: str, expected: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert said(tool, command).split("\n")[-1] == expected


def test_pytest_works(tool: BashTool) -> None:
    (tool._root / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'x').touch()\n")
    # Without plugins: ours is in this checkout, which may be below /tmp, and that is hidden.
    command = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider test_it.py"
    assert "1 passed" in said(tool, command)


def test_modes_owners_and_times_elsewhere_stay(tool: BashTool, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    before = victim.stat()
    said(
        tool,
        f"chmod 777 {victim}; touch -d 2000-01-01 {victim}; chown 65534 {victim}; setfattr -n user.x -v y {victim}",
    )
    after = victim.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_uid) == (before.st_mode, before.st_mtime_ns, before.st_uid)


@pytest.mark.skipif(shutil.which("ipcmk") is None, reason="ipcmk is not installed")
@pytest.mark.parametrize("rung", RUNGS)
def test_no_file_is_made_setuid(tmp_path: Path, rung: Rung) -> None:
    tool = tool_in(rung, tmp_path)
    ways = [
        "chmod u+s x",
        "chmod 6755 x",
        "install -m 4755 x y",
        "python3 -c \"import os; os.open('z', os.O_CREAT, 0o4755)\"",
    ]
    ended = tool.invoke(
        f"echo > x; {'; '.join(f'{way} && echo worked' for way in ways)}; mkdir d && chmod 2775 d && echo ok"
    )
    assert ended["stdout"] == "ok\n"
    assert not any(path.lstat().st_mode & 0o4000 for path in tmp_path.rglob("*"))


def test_memory_is_not_shared_with_processes_outside(tool: BashTool) -> None:
    assert "id" in said(tool, "ipcmk -M 4096; ipcs -m | tail -3")
    shared = Path("/proc/sysvipc/shm").read_text().splitlines()[1:] if Path("/proc/sysvipc/shm").exists() else []
    assert said(tool, "tail -n +2 /proc/sysvipc/shm") == ""
    assert len(shared) == len(Path("/proc/sysvipc/shm").read_text().splitlines()[1:])


def test_claimed_and_actual_protection_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Unix sockets, ptrace and mounts blocked" in Isolation("bubblewrap", False).describe()
    for rung in ("landlock",):
        told = Isolation(rung, False, "bubblewrap: it is not installed")
        assert "NOT blocked: changes to .git/hooks" in told.describe()
        assert "install bubblewrap" in told.describe()
        assert told.warning.startswith("Commands can change .git/hooks")
    assert Isolation("bubblewrap", False).warning == ""
    for version, told_so in ((5, True), (6, False)):
        monkeypatch.setattr(launcher, "_landlock_abi", lambda version=version: version)
        told = Isolation("landlock", False, "bubblewrap: it is not installed")
        assert ("signals to your other processes, which can end them (Linux before 6.12)" in told.describe()) is told_so
        assert ("end your other processes" in told.warning) is told_so
        assert "signals" not in Isolation("bubblewrap", False).describe()
    assert "each one needs approval" in Isolation("none", True, "x").warning
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "1", "riscv64")))
    filter_program.cache_clear()
    assert "Unix sockets, ptrace and mounts open (no filter for riscv64)" in Isolation("bubblewrap", False).describe()
    filter_program.cache_clear()


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return what the kernel would: the program, interpreted."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<iIQ6Q", number, architecture, 0, *padded)
    place = value = 0
    while True:
        code, yes, no, operand = struct.unpack_from("<HBBI", program, place * 8)
        place += 1
        match code:
            case 0x20:
                value = struct.unpack_from("<I", data, operand)[0]
            case 0x54:
                value &= operand
            case 0x15:
                place += yes if value == operand else no
            case 0x35:
                place += yes if value >= operand else no
            case 0x45:
                place += yes if value & operand else no
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(code)


ALLOWED, EPERM, ENOSYS = 0x7FFF0000, 0x50001, 0x50026


@pytest.mark.parametrize(
    (
        "machine",
        "architecture",
        "socket_number",
        "pair",
        "prlimit",
        "clone",
        "getpid",
        "ptrace",
        "unshare",
        "fchmodat",
        "openat",
    ),
    [
        ("x86_64", 0xC000003E, 41, 53, 302, 56, 39, 101, 272, 268, 257),
        ("aarch64", 0xC00000B7, 198, 199, 261, 220, 172, 117, 97, 53, 56),
    ],
)
def test_the_filter_of_each_machine(
    machine: str,
    architecture: int,
    socket_number: int,
    pair: int,
    prlimit: int,
    clone: int,
    getpid: int,
    ptrace: int,
    unshare: int,
    fchmodat: int,
    openat: int,
) -> None:
    program = filter_program(machine)
    assert program is not None
    expected = {
        (getpid,): ALLOWED,
        (socket_number, 1, 1): EPERM,
        (socket_number, 1 | 1 << 32, 1): EPERM,
        (socket_number, 2, 1): ALLOWED,
        (socket_number, 10, 1): ALLOWED,
        (socket_number, 16, 3): ALLOWED,
        (socket_number, 40, 1): EPERM,
        (pair, 1, 1): ALLOWED,
        (pair, 1, 5 | 0o2000000): ALLOWED,
        (pair, 1, 2 | 0o2000000): EPERM,
        (prlimit, 0, 0, 0x7FFF00001000, 0): ALLOWED,
        (prlimit, 7, 0, 0, 0x7FFF00001000): ALLOWED,
        (prlimit, 7, 0, 0x7FFF00001000, 0): EPERM,
        (prlimit, 7, 0, 0x7FFF00000000, 0): EPERM,
        (prlimit, 7, 0, 0x1000, 0): EPERM,
        (clone, 17): ALLOWED,
        (clone, 0x003D0F00): ALLOWED,
        (clone, 0x20000 | 17): EPERM,
        (clone, 0x10000000): EPERM,
        (435, 0, 0): ENOSYS,
        (437, 0, 0): ENOSYS,
        (fchmodat, 0, 0, 0o2755): ALLOWED,
        (fchmodat, 0, 0, 0o4755): EPERM,
        (452, 0, 0, 0o4755): EPERM,
        (openat, 0, 0, os.O_RDWR | os.O_CREAT, 0o755): ALLOWED,
        (openat, 0, 0, os.O_RDONLY, 0o4755): ALLOWED,
        (openat, 0, 0, os.O_RDWR | os.O_CREAT, 0o4755): EPERM,
        (openat, 0, 0, os.O_RDWR | 0o20000000, 0o4755): EPERM,
        (ptrace, 0): EPERM,
        (unshare, 0x10000000): EPERM,
        (425, 1): EPERM,
        (getpid | 0x40000000,): EPERM,
    }
    assert {call: verdict(program, architecture, *call) for call in expected} == expected
    for other in (0x40000003, 0x40000028, architecture ^ 1):
        assert verdict(program, other, getpid) == EPERM


@pytest.mark.parametrize("rung", RUNGS)
def test_limits_end_no_other_process_and_are_a_commands_own(tmp_path: Path, rung: Rung) -> None:
    tool = tool_in(rung, tmp_path)
    if tool.isolation.seccomp is None:
        pytest.skip("no filter of calls on this machine")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        limits = resource.prlimit(other.pid, resource.RLIMIT_CORE)
        script = f"import resource; resource.prlimit({other.pid}, resource.RLIMIT_CORE, (0, 0)); print('set')"
        assert "set" not in said(tool, f'{sys.executable} -c "{script}"')
        assert resource.prlimit(other.pid, resource.RLIMIT_CORE) == limits
    finally:
        other.communicate(b"\n")
    assert said(tool, "ulimit -n 100; ulimit -n") == "100"


@pytest.mark.parametrize("rung", RUNGS)
def test_what_a_person_types_in_another_terminal_is_out_of_reach(tmp_path: Path, rung: Rung) -> None:
    tool, (person, terminal) = tool_in(rung, tmp_path), os.openpty()
    os.write(person, b"typed\n")
    name = os.ttyname(terminal)
    assert "typed" not in said(
        tool, f"timeout 5 head -n 1 < {name}; timeout 5 head -n 1 < /proc/{os.getpid()}/fd/{terminal}"
    )
    assert os.read(terminal, 100) == b"typed\n"
    assert (
        said(tool, "echo a > /dev/stdout; echo b | cat /dev/stdin <(echo c); head -c 1 /dev/zero | wc -c")
        == "a\nb\nc\n1"
    )
    for each in (person, terminal):
        os.close(each)


def test_unknown_machines_have_no_filter() -> None:
    assert filter_program("riscv64") is None

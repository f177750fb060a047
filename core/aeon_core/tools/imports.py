"""The project files that an import would execute, found without importing anything, and a check at import."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType

from aeon_core.paths import real_path
from aeon_core.regular_file import closing_fd, open_regular, read_start

MAX_FILES = 2000
"""The most files of a project that are analysed; further imports are refused when they happen."""
MAX_SOURCE = 2_000_000
"""The largest source searched for imports, in bytes."""
MAX_DIGESTED = 256_000_000
"""Bytes of a file that are digested: a few bytes on the disk may be a sparse file of terabytes."""
_READ_AT_ONCE = 1 << 20
_SUFFIXES = (*importlib.machinery.EXTENSION_SUFFIXES, ".py", ".pyc")


def module_file(name: str, folder: Path) -> Path | None:
    """Return the file that `import name` would execute with the folder first on the path; None if it has none."""
    base = folder.joinpath(*name.split("."))
    candidates = [base / f"__init__{suffix}" for suffix in _SUFFIXES]
    candidates += [base.with_name(f"{base.name}{suffix}") for suffix in _SUFFIXES]
    return next((file for file in candidates if os.path.isfile(file)), None)  # noqa: PTH113  # it never raises


def module_files(names: Iterable[str], folder: Path, known: Iterable[Path] = ()) -> set[Path]:
    """Return the files below the folder that importing the modules would execute, `known` ones included.

    This follows import statements, also within functions, and calls of `import_module` and `__import__` with a literal
    name. Names built at run time cannot be seen.
    """
    files = set(known)
    todo = deque(names)
    for file in files:
        todo.extend(_imports(file, "", package=False))
    seen: set[str] = set()
    while todo and len(files) < MAX_FILES:
        parts = todo.popleft().split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name in seen or not parts[end - 1].isidentifier():
                continue
            seen.add(name)
            if (found := module_file(name, folder)) is not None:
                files.add(found)
                todo.extend(_imports(found, name, package=found.name.startswith("__init__.")))
    return files


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a regular file's bytes, or a word for what cannot be read. Never blocks.

    For a file of more than MAX_DIGESTED bytes, it is that of its start, with what changes whenever the file is written.
    """
    import hashlib  # it loads OpenSSL

    sha256, left = hashlib.sha256(), MAX_DIGESTED + 1
    try:
        with closing_fd(open_regular(file)) as descriptor:
            status = os.fstat(descriptor)
            while left and (data := os.read(descriptor, min(left, _READ_AT_ONCE))):
                sha256.update(data)
                left -= len(data)
    except OSError:
        return "unreadable"
    if left:
        return sha256.hexdigest()
    return f"{sha256.hexdigest()}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    import hashlib  # it loads OpenSSL

    return hashlib.sha256(data).hexdigest()


def file_bytes(file: Path, most: int) -> bytes | None:
    """Return at most `most` bytes of the beginning of a regular file; None if it cannot be read."""
    try:
        return read_start(file, most)
    except OSError:
        return None


class ProjectFinder:
    """Finds modules of a project and compiles them from the bytes to whose digest a person has consented.

    It stays installed for later imports of those modules; a cached `.pyc` of the project is never executed.
    """

    def __init__(self, root: Path, digests: Mapping[str, str]) -> None:
        self._root = str(real_path(root))
        self._digests = {os.path.realpath(path): digest for path, digest in digests.items()}
        self._packages: set[str] = set()
        self.is_open = False
        """Whether to find top-level modules, too."""

    def install(self) -> None:
        """Install it before Python's path, and after built-in modules."""
        paths = [place for place, each in enumerate(sys.meta_path) if each is importlib.machinery.PathFinder]
        sys.meta_path.insert(paths[0] if paths else len(sys.meta_path), self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how a module of the project is loaded, None for any other. Raises ImportError if it was changed."""
        top = fullname.partition(".")[0]
        if not self.is_open if path is None else top not in self._packages:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, [self._root] if path is None else path, target)
        if spec is None:
            return None
        self._packages.add(top)
        if spec.origin is None or not spec.has_location:
            return spec
        self.verified(spec.origin)
        if isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _VerifiedSource(fullname, spec.origin, self)
            spec.cached = None
        return spec

    def verified(self, path: str) -> bytes:
        """Return the bytes of a module. Raises ImportError if they are not those that were consented to."""
        data = file_bytes(Path(path), MAX_DIGESTED + 1)
        expected = self._digests.get(os.path.realpath(path))
        if expected is None:
            raise ImportError(f"{path!r} is imported in a way that could not be foreseen, so you have not trusted it")
        if data is None or sha256_of(data) != expected:
            raise ImportError(f"{path!r} has changed since you trusted it; run `aeon-tui trust` again")
        return data


class _VerifiedSource(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, finder: ProjectFinder) -> None:
        super().__init__(fullname, path)
        self._finder = finder

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002  # the interface's
        # Compiled from the bytes that were compared: a cached file could contain other code.
        code: CodeType = self.source_to_code(self._finder.verified(self.path), self.path)
        return code


def _imports(file: Path, module: str, *, package: bool) -> Iterator[str]:
    """Yield the names of the modules that a source imports, as far as its text shows."""
    if file.suffix != ".py" or (source := file_bytes(file, MAX_SOURCE)) is None:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module, package=package)
            yield from (f"{base}.{alias.name}".strip(".") for alias in node.names if base or node.level)
        elif isinstance(node, ast.Call) and _imports_by_name(node.func) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and not name.value.startswith("."):
                yield name.value


def _base(node: ast.ImportFrom, module: str, *, package: bool) -> str:
    """Return the package that a `from` statement names, resolved if it is relative."""
    if not node.level:
        return node.module or ""
    parents = module.split(".")
    kept = len(parents) - node.level + package
    return ".".join([*parents[: max(0, kept)], *([node.module] if node.module else [])])


def _imports_by_name(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in ("import_module", "__import__")

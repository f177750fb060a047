"""An editor's messages about YAML files: a client of the YAML language server, which npm installs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

SERVER = ("npx", "-y", "yaml-language-server", "--stdio")


def problems(*paths: Path) -> list[str]:
    """Return the server's findings in files, in order, each as `line N: message`."""
    found: list[str] = []
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            _send(
                server.stdin, id=1, method="initialize", params={"processId": None, "capabilities": {}, "rootUri": None}
            )
            while "result" not in _receive(server.stdout):
                pass
            _send(server.stdin, method="initialized", params={})
            for path in paths:
                opened = {"uri": path.absolute().as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text()}
                _send(server.stdin, method="textDocument/didOpen", params={"textDocument": opened})
                while (message := _receive(server.stdout)).get("method") != "textDocument/publishDiagnostics":
                    if "id" in message:  # the server asks for its settings
                        _send(server.stdin, id=message["id"], result=[None for _ in message["params"].get("items", ())])
                found += _lines(message["params"]["diagnostics"])
        finally:
            server.kill()
    return found


def _lines(diagnostics: list[dict[str, Any]]) -> list[str]:
    found = sorted(diagnostics, key=lambda each: each["range"]["start"]["line"])
    return [f"line {each['range']['start']['line'] + 1}: {each['message']}" for each in found]


def _send(to: IO[bytes], **message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    to.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    to.flush()


def _receive(source: IO[bytes]) -> Mapping[str, Any]:
    length = 0
    while line := source.readline().strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    if not length:
        raise ConnectionError(f"{SERVER[2]} ended")
    message: Mapping[str, Any] = json.loads(source.read(length))
    return message

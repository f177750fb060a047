"""`python -m system2 "task"`, and the script `system2`."""

from __future__ import annotations

import sys

OLDEST_PYTHON = (3, 11)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code; an error is one line on stderr."""
    # Before any import of ours: an older Python cannot read those modules (REQ-142).
    if sys.version_info < OLDEST_PYTHON:
        found, oldest = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST_PYTHON))
        sys.stderr.write(f"system2: needs Python {oldest} or newer, this is {found}; run it with a newer one\n")
        return 2
    try:
        from system2.command import execute, parse_arguments

        return execute(parse_arguments(argv))
    except (KeyboardInterrupt, RuntimeError) as error:
        # While it starts; Python 3.11 raises a RuntimeError for one in `__set_name__`.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        sys.stderr.write("system2: interrupted\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())

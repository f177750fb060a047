"""`./dev bench`: what Aeon costs, as ratios measured in one run. Absolute times are this machine's, ratios travel."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tests.benchmarks import growth, scale, semantic, starts, steps

PARTS: dict[str, Callable[[], None]] = {
    "steps": steps.report,
    "starts": starts.report,
    "semantic": semantic.report,
    "growth": growth.report,
    "scale": scale.report,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], help="what to measure (default: everything)")
    for name in parser.parse_args().part or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()

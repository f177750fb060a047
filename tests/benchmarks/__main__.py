"""`./dev bench`: what Aeon costs, as ratios measured in one run. Absolute times are this machine's, ratios travel."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tests.aeon_core.supervisor import score
from tests.benchmarks import floods, growth, idle, scale, scroll, semantic, starts, steps, system2, travel

PARTS: dict[str, Callable[[], None]] = {
    "steps": steps.report,
    "starts": starts.report,
    "semantic": semantic.report,
    "repair": score.report,
    "growth": growth.report,
    "scale": scale.report,
    "floods": floods.report,
    "scroll": scroll.report,
    "travel": travel.report,
    "idle": idle.report,
    "system2": system2.report,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], help="what to measure (default: everything)")
    parser.add_argument("--seconds", type=float, default=floods.SECONDS, help="how long a flood lasts (default: 30)")
    options = parser.parse_args()
    floods.seconds = options.seconds
    for name in options.part or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()

"""Circles in a graph of needs, in one walk: a plan whose dependencies are all wrong costs no more than a sound one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def circles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return one circle for each group of members that need each other, a member that needs itself included.

    Each begins with its first member in the order of `needs`, whose keys hold every member that is needed.
    """
    group_of = _groups(needs)
    found, seen = [], set[int]()
    for start in needs:
        group = group_of[start]
        if group not in seen:
            seen.add(group)
            if (circle := _circle(start, needs, group_of)) is not None:
                found.append(circle)
    return found


def _groups(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the number of each member's group: those that can be reached from each other (Tarjan's algorithm)."""
    place: dict[str, int] = {}
    low: dict[str, int] = {}
    group_of: dict[str, int] = {}
    open_members: list[str] = []
    for root in needs:
        walk = [(root, iter(needs[root]))] if root not in place else []
        while walk:
            member, rest = walk[-1]
            if member not in place:
                place[member] = low[member] = len(place)
                open_members.append(member)
            needed = next((other for other in rest if other not in group_of), None)
            if needed is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[member])
                if low[member] == place[member]:
                    _close(member, open_members, group_of)
            elif needed in place:
                low[member] = min(low[member], place[needed])
            else:
                walk.append((needed, iter(needs[needed])))
    return group_of


def _close(member: str, open_members: list[str], group_of: dict[str, int]) -> None:
    number = len(group_of)
    while member not in group_of:
        group_of[open_members.pop()] = number


def _circle(start: str, needs: Mapping[str, Sequence[str]], group_of: Mapping[str, int]) -> list[str] | None:
    """Return the shortest way from a member back to itself, None where there is none."""
    came_from = {start: start}
    level = [start]
    while level:
        ahead = []
        for member in level:
            for needed in needs[member]:
                if needed == start:
                    return _way(start, member, came_from)
                if needed not in came_from and group_of[needed] == group_of[start]:
                    came_from[needed] = member
                    ahead.append(needed)
        level = ahead
    return None


def _way(start: str, last: str, came_from: Mapping[str, str]) -> list[str]:
    way = [last]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]

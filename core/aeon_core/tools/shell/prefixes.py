"""The programs that run the command that follows them, such as `sudo -u x`, and how to find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefix:
    """How to find the command after `sudo -u x`: which options take a value, how many operands come first."""

    valued: str = ""
    operands: int = 0
    script: str = ""
    """The options whose value is a script."""


PREFIXES: dict[str, Prefix] = {
    "env": Prefix("-u --unset -C --chdir -P"),
    "sudo": Prefix("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot --role --type"),
    "doas": Prefix("-u -C"),
    "pkexec": Prefix("--user"),
    "nohup": Prefix(),
    "setsid": Prefix(),
    "exec": Prefix("-a"),
    "command": Prefix(),
    "builtin": Prefix(),
    "coproc": Prefix(),
    "time": Prefix("-f -o --format --output"),
    "nice": Prefix("-n --adjustment"),
    "ionice": Prefix("-c -n --class --classdata"),
    "chrt": Prefix("-T -P -D", operands=1),
    "taskset": Prefix("", operands=1),
    "timeout": Prefix("-s -k --signal --kill-after", operands=1),
    "stdbuf": Prefix("-i -o -e --input --output --error"),
    "unbuffer": Prefix(),
    "chroot": Prefix("--userspec --groups", operands=1),
    "unshare": Prefix("-S -G -R -w --setuid --setgid --root --wd --map-user --map-group"),
    "nsenter": Prefix("-t -S -G -r -w --target --setuid --setgid"),
    "setpriv": Prefix("--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --pdeathsig"),
    "strace": Prefix("-e -o -p -s -u -E -a -b -I -O -P -S -U -X"),
    "ltrace": Prefix("-e -o -p -s -u -a -n"),
    "fakeroot": Prefix("-l -s -i -b"),
    "busybox": Prefix(),
    "toybox": Prefix(),
    "systemd-run": Prefix("-p -u -E -H -M -d --property --unit --setenv --uid --gid --working-directory"),
    "flock": Prefix("-w -E --timeout --conflict-exit-code", operands=1, script="-c --command"),
    "watch": Prefix("-n --interval -q --equexit"),
    "xargs": Prefix("-I -n -P -L -d -a -s -E --replace --max-args --max-procs --max-lines --delimiter --arg-file"),
    "parallel": Prefix("-j -S -N -n -I -a -d -C --jobs --sshlogin --colsep --arg-file --results --joblog --tmpdir"),
    "su": Prefix("-s -g -G --shell --group", operands=2, script="-c --command --session-command"),
    "runuser": Prefix("-u -s -g -G --user --shell --group", script="-c --command --session-command"),
    "script": Prefix("-T -I -O -B -o -E -m", operands=1, script="-c --command"),
    "ssh": Prefix("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w", operands=1),
}
"""By the program's name."""

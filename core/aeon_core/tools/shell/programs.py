"""The programs that the rules know, by what they do with their arguments."""

from __future__ import annotations

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _names("sh bash dash zsh ksh mksh ash fish rbash")
INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|nodejs|php|lua|deno|bun|pypy|osascript)[\d.]*")

SIMPLE_RUNNERS = _names("env sudo doas timeout time nice nohup setsid command builtin exec")
"""They run what follows: after a duration for `timeout`, assignments for `env` and `sudo`. Options are not read."""

RUNNERS = _names(
    """
    pkexec coproc ionice chrt taskset stdbuf unbuffer chroot unshare nsenter setpriv strace ltrace fakeroot busybox
    toybox systemd-run flock watch xargs parallel su runuser gosu script ssh bwrap at batch tmux screen expect npx bunx
    pnpx uvx eval trap alias enable hash shopt let declare typeset local readonly mapfile readarray getopts compgen
    complete bind fc
    """
)
"""They run text or words in ways that are not read here, or give a word another meaning."""

READERS = _names(
    """
    echo cat tac ls dir ll cd pushd popd grep egrep fgrep head tail wc cut paste join comm diff cmp mkdir rmdir touch
    stat tree du df basename dirname realpath readlink pwd sleep true false seq expr column fold nl rev md5sum sha1sum
    sha256sum return exit shift
    """
)
"""Whatever their arguments turn out to be, they destroy nothing and run nothing."""

ONLY_READ = _names(
    """
    ls cat head tail wc grep egrep fgrep rg find fd tree du df stat file diff cmp comm sort uniq cut nl column pwd echo
    which basename dirname realpath readlink md5sum sha1sum sha256sum jq ps date
    """
)
"""Whose name says that they read: a rule may allow them with any arguments, but for options that write (`options`)."""

GIT_RECORDS = _names(
    "status log diff show blame ls-files ls-tree rev-parse rev-list describe shortlog cat-file add commit"
)
"""The same of git's sub-commands: they read, or record what is there."""

WRITERS = _names("tee cp mv install rsync ln shred wipefs sponge truncate blkdiscard sgdisk")
"""They write to a path among their arguments."""

CLIENTS = _names(
    """
    psql pgcli mysql mycli mariadb mysqladmin sqlite sqlite3 litecli duckdb clickhouse clickhouse-client
    sqlcmd osql tsql isql sqlplus usql mongosh mongo bq snowsql cockroach cqlsh dropdb db2 trino presto hive
    beeline spark-sql impala-shell heroku wrangler
    """
)
"""Clients of databases."""

TASK_RUNNERS = _names(
    """
    make gmake ninja just task rake mvn mvnw gradle gradlew ant sbt lein grunt gulp mage doit waf scons invoke
    inv fab npm-run-all run-s run-p ansible-playbook nox tox
    """
)
"""Each of their operands names something that they do."""

DATA_VERBS = _names(
    """
    test install i add view info show remove uninstall search generate g help get list ls logs log status
    describe delete rm create new init build tag pull push checkout clone open edit diff policy why update
    upgrade lint format check config set explain outdated
    """
)
"""Sub-commands whose operands are files or names, of whatever program."""

RUNNERS_OF_TASKS = _names("run run-script exec x task dlx job workflow do call")
"""Sub-commands whose first operand names what is done."""

TAKES_DATA = _names(
    """
    echo printf cat tac ls dir ll cd pushd popd grep egrep fgrep zgrep rg ag ack find fd locate sed awk gawk
    mawk head tail less more most bat wc sort uniq cut tr paste join comm diff colordiff cmp patch cp mv rm
    mkdir rmdir touch ln install chmod chown chgrp stat file test [ tree du df vi vim nvim nano emacs code
    subl jest vitest mocha rspec unittest phpunit ctest nosetests man info help which type whereis whatis
    apropos hash export declare local readonly typeset unset read set shift return exit alias unalias trap let
    tar zip unzip gzip gunzip zcat bzip2 xz zstd jq yq xmllint curl wget ssh scp sftp rsync ping dig nslookup
    host kubectl pytest ruff mypy black isort flake8 pylint eslint prettier tsc tee xxd od hexdump strings
    md5sum sha1sum sha256sum basename dirname realpath readlink pwd date cal sleep kill pkill killall pgrep ps
    top htop systemctl service journalctl tmux screen id groups whoami hostname uname true false seq yes expr
    bc truncate dd split shred mktemp mount umount lsof printenv fzf column fold nl rev psql mysql sqlite3
    ctags cloc wait jobs fg bg useradd userdel usermod groupadd passwd getent crontab logger open xdg-open
    pbcopy xclip
    """
)
"""Their operands are files, patterns, names or text: never what is done."""

"""What counts as a secret: configured values, variables with the name of a secret, and keys in their issuers' formats.

All rules are exact: no word before an `=` alone makes what follows a secret, and nothing is guessed from English.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEAST = 8
"""Characters that a configured value or a variable's value must have to count as a secret."""

_NAME_PARTS = (
    r"API_?KEYS?|KEYS?|TOKENS?|SECRETS?|PASS|PWD|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|CREDS|AUTH|PAT|DSN|JWT"
    r"|COOKIES?|WEBHOOK"
)
_SECRET_NAME = re.compile(
    rf"(?:^|[_.-])(?:{_NAME_PARTS})\d*(?:$|[_.-])|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|ACCESSKEY|CREDENTIAL|TOKEN$",
    re.IGNORECASE,
)
_NO_SECRETS = frozenset({"PWD", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "XAUTHORITY"})
_SWITCHES = frozenset({"disabled", "required", "optional", "automatic", "undefined", "redacted"})
"""Words of at least LEAST characters that only switch something on or off."""
_DOTTED_PATH = re.compile(r"(?:~|\.{1,2})?/\S*")
_WORD = re.compile(r"[A-Z]?[a-z]{1,20}|[A-Z]{1,20}")

# Not at the end of a longer word, such as `task-…`.
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{20,}|xai-[A-Za-z0-9_-]{20,}|tvly-[A-Za-z0-9_-]{16,}|pplx-[A-Za-z0-9]{32,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|lin_api_[A-Za-z0-9]{20,}|dop_v1_[a-f0-9]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}|shpat_[a-fA-F0-9]{32}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"
    r"|AIza[0-9A-Za-z_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:hf|npm|gsk)_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}|ABSK[A-Za-z0-9+/]{60,}={0,2}|AGE-SECRET-KEY-1[0-9A-Z]{50,}"
    r"|hv[sbr]\.[A-Za-z0-9_-]{24,}|r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])|dapi[0-9a-f]{32}(?![0-9A-Za-z])"
    r"|nvapi-[A-Za-z0-9_-]{40,}|csk-[A-Za-z0-9]{32,}|tgp_v1_[A-Za-z0-9_-]{40,}|AQ\.[A-Za-z0-9_-]{40,}"
    r"|bedrock-api-key-[A-Za-z0-9+/]{60,}={0,2}|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|GOCSPX-[A-Za-z0-9_-]{28}"
    r"|gl(?:dt|rt|ptt|cbt|soat|agent)-[A-Za-z0-9_-]{20,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|ntn_[A-Za-z0-9]{40,}"
    r"|tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}|AT[AC]TT3[A-Za-z0-9_=-]{100,}"
    r"|NRAK-[A-Z0-9]{27}(?![A-Za-z0-9])|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|HRKU-[A-Za-z0-9_-]{36,}|pul-[a-f0-9]{40}(?![A-Za-z0-9])"
    r"|fc-[a-f0-9]{32}(?![A-Za-z0-9-])|sntrys_eyJ[A-Za-z0-9+/]{40,}={0,2}_[A-Za-z0-9+/]{40,}|sntry[iu]_[a-f0-9]{64}"
    r"|figd_[A-Za-z0-9_-]{40,}|jina_[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])|sbp_(?:oauth_)?[a-f0-9]{40}"
    r"|sb_secret_[A-Za-z0-9_-]{30,}|vck_[A-Za-z0-9]{40,}|rubygems_[a-f0-9]{48}|whsec_[A-Za-z0-9+/]{32,}={0,2}"
    r"|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}|pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,}"
    r"|fw_(?=[A-Za-z]*\d)[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9_])"
    r"|ops_eyJ[A-Za-z0-9+/]{200,}={0,2}"
    r"|dp\.(?:[cps]t|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}(?![A-Za-z0-9])"
    r"|eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"
)
_AZURE = re.compile(
    r"(?<![\w~.-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])|(?<=AccountKey=)[A-Za-z0-9+/]{86}=="
    r"|(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?![A-Za-z0-9])"
)
_BEARER = re.compile(r"(?i)\bbearer ([A-Za-z0-9._~+/-]{20,}={0,2})")
_HEADER = re.compile(
    r"(?i)(?<![\w-])(?:proxy-)?authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?"
    r"(?:(?:basic|bearer|token|apikey|negotiate)[ \t]{1,4}([A-Za-z0-9._~+/=-]{6,})|([A-Za-z0-9._~+/=-]{16,}))"
)
_COOKIES = re.compile(r"(?i)(?<![\w-])(?:set-)?cookie2?[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?([^\r\n\"']{1,8000})")
_COOKIE = re.compile(r"(?:^|;)[ \t]*([^=;\s]{1,200})=([^;\s]{4,})")
_ATTRIBUTES = frozenset({"path", "domain", "expires", "max-age", "samesite", "version", "priority"})
HEADERS = {
    **dict.fromkeys(("authorization", "proxy-authorization"), "Authorization"),
    **dict.fromkeys(("cookie", "set-cookie"), "Cookie"),
    **dict.fromkeys(("secretaccesskey", "secret_access_key", "aws_secret_access_key"), "SecretAccessKey"),
    **dict.fromkeys(("sessiontoken", "aws_session_token", "x-amz-security-token"), "SessionToken"),
}
"""HTTP headers and fields of AWS that hold credentials, in lower case, by the name that `header_spans` knows."""

_USERINFO = re.compile(r"(?<=://)([^/\s:@\"'<>\\\[\]]{0,200})(?::([^/\s@\"'<>\\]{0,300}))?@(?=[\w\[])")
_WEB = re.compile(r"(?i)(?:https?|wss?|ftp)://\Z")
_NO_PASSWORD = frozenset({"", "x-oauth-basic"})
_LONG_USER = 20
_PLACEHOLDER = re.compile(r"\$\{?\w+\}?|\{[^{}]*\}|%\w|\*+")
_IS = r"[\"']?(?:[ \t]{0,40}[:=,>|]{1,2}[ \t]{0,40}|[ \t]{1,40})[\"']?"
# The secrets of AWS have no prefix: only their name and length tell them from other text (REQ-111).
_AWS = re.compile(
    rf"(?i)secret[_-]?(?:access[_-]?)?key{_IS}([a-z0-9+/]{{40}})(?![\w+/=-])"
    rf"|(?:session|security)[_-]?token{_IS}([a-z0-9+/%]{{100,}}={{0,2}})"
)
_HOOK = re.compile(r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}|(?<=/api/webhooks/)\d{5,}/[A-Za-z0-9_-]{20,}")

_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
# A key that is cut off has no end marker; then only lines with a long run of base64 belong to it.
_PEM = re.compile(
    rf"-----BEGIN {_PEM_NAME}((?:[^-]|-(?!----)){{1,20000}}(?=-----END {_PEM_NAME})"
    r"|(?:\s*[^\n]{0,60}?[A-Za-z0-9+/]{40,}={0,2})+(?:\s*[^\nA-Za-z]{0,20}[A-Za-z0-9+/]{1,60}={0,2}\s*\Z)?)"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}|[A-Za-z0-9+/]+={0,2}(?=\s*\Z)")

Span = tuple[int, int]


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets among environment variables: those with the name of a secret and at least LEAST characters.

    A value is not a secret if it is a path whose folder exists, a path that begins with a dot or `~`, or a web address
    without userinfo and query: `GOOGLE_APPLICATION_CREDENTIALS` and `AUTH_URL` hold no secret themselves. From any
    other variable, the password in an address counts, and from `*_HEADERS` (OpenTelemetry's `name=value,…`) each value.
    """
    for name, value in environ.items():
        if name not in _NO_SECRETS and _SECRET_NAME.search(name) and not is_place(name, value.strip()):
            yield value.strip()
        elif name.upper().endswith("_HEADERS"):
            yield from (unquote(pair.partition("=")[2].strip()) for pair in value.split(","))
        elif "://" in value and "@" in value:
            yield from url_secrets(value.strip())


def counts(value: str) -> bool:
    """Return whether a value with the name of a secret is long enough for one, and not just a switch."""
    return len(value) >= LEAST and value.lower() not in _SWITCHES and value not in "[redacted:"


def is_place(name: str, value: str) -> bool:
    """Return whether a variable's value is a path or a web address that is no secret itself."""
    if value.startswith("/"):
        folder = Path(value).parent
        return os.access(value, os.F_OK) or (folder != Path("/") and os.access(folder, os.F_OK))
    if _DOTTED_PATH.fullmatch(value):
        return True
    if value.startswith(("http://", "https://")) and "WEBHOOK" not in name.upper() and "DSN" not in name.upper():
        return "@" not in value and "?" not in value
    return False


def is_word(name: str, value: str) -> bool:
    """Return whether a value is a word, such as `production`, under a name that is no secret's."""
    return _WORD.fullmatch(value) is not None and not _SECRET_NAME.search(name)


def url_secrets(url: str) -> Iterator[str]:
    """Yield the password in an address, or its user if it has no password; as written and decoded."""
    try:
        parts = urlsplit(url)
        found = parts.password or parts.username
    except ValueError:
        return
    if found:
        yield from dict.fromkeys((found, unquote(found)))


_TOKEN_OPTION = re.compile(
    rf"--?(?:[\w-]*[_-])?(?:{_NAME_PARTS.lower().replace('_?', '[-_]?')}|bearer)(?:[_-][\w-]*)?", re.IGNORECASE
)
_FLAG = re.compile(r"-{1,2}[A-Za-z][\w-]*\Z")


def argument_secrets(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the values of options such as `--token VALUE`, `--api-key=VALUE` and `--header "Authorization: …"`."""
    expected = False
    for argument in arguments:
        option, has_value, value = argument.partition("=")
        if expected and not _FLAG.match(argument):
            yield argument
        expected = not has_value and _TOKEN_OPTION.fullmatch(option) is not None
        if has_value and _TOKEN_OPTION.fullmatch(option):
            yield value
        yield from (argument[start:end] for start, end in spans(argument))


# A search for one character is many times faster than one for a longer text, so each form is found at its rarest.
_AT_DASH = re.compile(
    r"-(?:(?<=[iky]-)(?:(?<=sk-)|(?<=xai-)|(?<=tvly-)|(?<=pypi-)|(?<=nvapi-)|(?<=api-key-)|(?<=tskey-))"
    r"|(?<=[abeprs]-)(?:(?<=xox[abeprs]-)|(?<=xapp-))"
    r"|(?<=t-)(?:(?<=gl[dr]t-)|(?<=gl(?:pat|ptt|cbt)-)|(?<=glsoat-)|(?<=glagent-))"
    r"|(?<=[xXKU]-)(?:(?<=pplx-)|(?<=GOCSPX-)|(?<=NRAK-)|(?<=PMAK-)|(?<=HRKU-))"
    r"|(?=[0-9a-f]{32})(?:(?<=pul-)|(?<=fc-))|BEGIN|SECRET-KEY-)"
)
_AT_UNDERSCORE = re.compile(
    r"_(?:(?<=[oprsu]_)(?:(?<=gh[pousr]_)|(?<=sbp_)|(?<=sntry[su]_)|(?<=rubygems_))"
    r"|(?<=[km8]_)(?:(?<=npm_)|(?<=gsk_)|(?<=vck_)|(?<=pcsk_)|(?<=r8_))"
    r"|(?<=[12i]_)(?:(?<=lin_api_)|(?<=dop_v1_)|(?<=tgp_v1_)|(?<=lsv2_)|(?<=sntryi_))"
    r"|(?<=[aden]_)(?:(?<=k_live_)|(?<=glsa_)|(?<=ntn_)|(?<=jina_)|(?<=figd_)|(?<=pscale_))"
    r"|(?<=[cftw]_)(?:(?<=hf_)|(?<=pat_)|(?<=k_test_)|(?<=whsec_)|(?<=fw_)(?=[A-Za-z0-9]{22})"
    r"|(?<=secret_)(?=[A-Za-z0-9_-]{30})))"
)
_AT_A = re.compile(r"A(?:KIA|SIA|Iza|BSK|T[AC]TT3)")
_AT_SECRET = re.compile(r"ecret[_-]?(?:[aA]ccess|[kK]ey)")
_AT_TOKEN = re.compile(r"oken(?:(?<=[ny][tT]oken)|(?<=[ny][_-][tT]oken))")


def may_hold_key(text: str) -> bool:
    """Return False if no key, address or header can be in the text: a cheap check before `spans`."""
    if len(text) < LEAST:
        return False
    return (
        _may_hold_prefix(text)
        or ("/" in text and (("@" in text and ":" in text) or "hooks" in text))
        or _may_hold_header(text) or _may_name_aws(text) or _may_hold_azure(text)
    )  # fmt: skip


def _may_hold_prefix(text: str) -> bool:
    return (
        ("-" in text and _AT_DASH.search(text) is not None)
        or ("_" in text and _AT_UNDERSCORE.search(text) is not None)
        or ("A" in text and _AT_A.search(text) is not None)
        or "eyJ" in text or "ya29." in text or "SG." in text or "AQ." in text
        or "hvs." in text or "hvb." in text or "hvr." in text or "dapi" in text or "dp." in text
    )  # fmt: skip


def _may_hold_header(text: str) -> bool:
    return (
        "earer " in text or "uthorization" in text or "ookie" in text
        or "BEARER " in text or "AUTHORIZATION" in text or "COOKIE" in text
    )  # fmt: skip


def _may_name_aws(text: str) -> bool:
    return (
        ("ecret" in text and _AT_SECRET.search(text) is not None)
        or ("oken" in text and _AT_TOKEN.search(text) is not None)
        or "ECRET" in text or "OKEN" in text
    )  # fmt: skip


def _may_hold_azure(text: str) -> bool:
    return "Q~" in text or "JQQJ99" in text or "AccountKey=" in text


def spans(text: str) -> Iterator[Span]:
    """Yield the positions of keys in a text, recognised by their issuer's format or by their context, unordered."""
    if _may_hold_prefix(text):
        yield from (found.span() for found in _KEYS.finditer(text))
    if _may_hold_header(text):
        yield from (found.span(1) for found in _BEARER.finditer(text))
        yield from (found.span(found.lastindex or 0) for found in _HEADER.finditer(text))
        for header in _COOKIES.finditer(text):
            yield from _cookies(header[1], header.start(1))
    if _may_name_aws(text):
        yield from (found.span(found.lastindex or 0) for found in _AWS.finditer(text))
    if _may_hold_azure(text):
        yield from (found.span() for found in _AZURE.finditer(text))
    if "@" in text:
        for found in _USERINFO.finditer(text):
            yield from _userinfo(text, found)
    if "hooks" in text:
        yield from (found.span() for found in _HOOK.finditer(text))
    if "PRIVATE KEY" in text:
        for block in _PEM.finditer(text):
            start = block.start(1)
            yield from ((start + run.start(), start + run.end()) for run in _BASE64.finditer(block[1]))


def header_spans(header: str, value: str) -> Iterator[Span]:
    """Yield the positions of the credentials in the value of one of HEADERS."""
    kind = HEADERS[header]
    begins = len(kind) + 2
    for start, end in spans(f"{kind}: {value}"):
        if start >= begins:
            yield start - begins, end - begins


def _cookies(text: str, at: int) -> Iterator[Span]:
    for pair in _COOKIE.finditer(text):
        if pair[1].lower() not in _ATTRIBUTES and not _PLACEHOLDER.fullmatch(pair[2]):
            yield at + pair.start(2), at + pair.end(2)


def _userinfo(text: str, found: re.Match[str]) -> Iterator[Span]:
    user, password = found[1], found[2]
    if password and not _PLACEHOLDER.fullmatch(password) and password not in _NO_PASSWORD:
        yield found.span(2)
    if password is None:
        is_key = len(user) >= LEAST and _WEB.search(text, max(0, found.start() - 8), found.start()) is not None
    else:
        is_key = password in _NO_PASSWORD or len(user) >= _LONG_USER
    if is_key and user and not _PLACEHOLDER.fullmatch(user):
        yield found.span(1)

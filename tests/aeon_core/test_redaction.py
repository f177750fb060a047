from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.redaction import (
    TOKEN,
    SecretVault,
    cut_place,
    names_in,
    redact,
    redact_json,
    redact_text,
    tokens_in,
    user_key,
)
from aeon_core.secret_forms import argument_secrets, secret_values, url_secrets
from tests.cpu_limit import cpu_limit

BODY = base64.b64encode(bytes(range(256)) * 4).decode()
LINES = [BODY[at : at + 64] for at in range(0, len(BODY), 64)]
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
PEM = "\n".join([BEGIN, *LINES, END])

KEYS = {
    "anthropic": "sk-" + "ant-" + "x" * 30,
    "openai": "sk-" + "proj-" + "a1" * 20,
    "xai": "xai-" + "a1" * 20,
    "tavily": "tvly-" + "a1" * 10,
    "linear": "lin_api_" + "a1" * 20,
    "digitalocean": "dop_v1_" + "a1" * 32,
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "github": "ghp_" + "a" * 36,
    "gitlab": "glpat-" + "a1" * 10,
    "slack": "xoxb-" + "1234567890",
    "google": "AIza" + "b" * 35,
    "sendgrid": "SG" + "." + "a1" * 11 + "." + "b2" * 20,
    "stripe": "sk_" + "live_" + "a1" * 10,
    "hugging face": "hf_" + "a" * 34,
    "bedrock": "ABSK" + "QmVk" * 20,
    "vault": "hvs" + ".CAES" + "a1_-" * 22,
    "vault root": "hvs" + "." + "a1" * 12,
    "replicate": "r8_" + "a1" * 18 + "b",
    "databricks": "dapi" + "0a" * 16,
    "nvidia": "nvapi-" + "a1_-" * 16,
    "cerebras": "csk-" + "a1" * 24,
    "together": "tgp_v1_" + "a1_-" * 11,
    "gemini": "AQ" + ".Ab8RN6" + "a1_-" * 10,
    "bedrock for a session": "bedrock-api-key-" + "a1+/" * 50 + "==",
    "langsmith": "lsv2_pt_" + "0a" * 16 + "_" + "0a" * 5,
    "google client": "GOCSPX-" + "a1_-" * 7,
    "gitlab deploy token": "gldt-" + "a1_-" * 5,
    "gitlab runner": "glrt-" + "a1_-" * 5,
    "gitlab pipeline trigger": "glptt-" + "a1" * 20,
    "gitlab agent": "glagent-" + "a1" * 25,
    "gitlab scim": "glsoat-" + "a1" * 10,
    "grafana": "glsa_" + "a1" * 16 + "_" + "0a" * 4,
    "notion": "ntn_" + "a1" * 23,
    "azure application": "abc" + "8Q~" + "d1_e" * 8 + ".f",
    "azure openai": "A1b2" * 13 + "JQQJ" + "99BAACYeBjFXJ3w3AAABACOGx1y2",
    "tailscale": "tskey-" + "auth-" + "kA1b2C3CNTRL-" + "a1B2" * 8,
    "atlassian": "ATATT3" + "xFfGF0" + "a1_-" * 45 + "=0A1B2C3D",
    "bitbucket": "ATCTT3" + "xFfGN0" + "a1_-" * 45 + "=0A1B2C3D",
    "sentry": "sntrys_" + "eyJpYXQiO" + "a1+/" * 20 + "=_" + "a1+/" * 10 + "a1b",
    "sentry user": "sntryu_" + "0a" * 32,
    "figma": "figd_" + "a1_-" * 10,
    "jina": "jina_" + "0a" * 16 + "a1B2" * 7,
    "supabase": "sbp_" + "0a" * 20,
    "supabase for a program": "sbp_oauth_" + "0a" * 20,
    "supabase secret": "sb_secret_" + "a1B2" * 5 + "a1_" + "a1B2" * 2,
    "vercel": "vck_" + "a1B2" * 14,
    "fireworks": "fw_" + "a1B2" * 6,
    "firecrawl": "fc-" + "0a" * 16,
    "pulumi": "pul-" + "0a" * 20,
    "rubygems": "rubygems_" + "0a" * 24,
    "webhook": "whsec_" + "a1+/" * 8 + "=",
    "1password": "ops_" + "eyJ" + "a1B2" * 80,
    "doppler": "dp" + ".pt." + "a1B2" * 10 + "a1b",
    "doppler service": "dp" + ".st.prd_eu." + "a1B2" * 10 + "a1b",
    "new relic": "NRAK-" + "A1B" * 9,
    "postman": "PMAK-" + "0a" * 12 + "-" + "0a" * 17,
    "heroku": "HRKU-" + "AA" + "a1_-" * 14 + "a1",
    "planetscale": "pscale_" + "tkn_" + "a1_-" * 10 + "a1B",
    "pinecone": "pcsk_" + "a1B2C_" + "a1B" * 21,
    "notion of before": "secret_" + "a1B2" * 10 + "a1B",
    "shopify": "shpat_" + "0a" * 16,
    "groq": "gsk_" + "a1B2" * 13,
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJlLW9mLWl0",
}
"""Each is a secret anywhere."""
AROUND = {
    "bearer": ("Bearer {}", "abcdefghijklmnopqrst"),
    "bearer in capitals": ("BEARER {}", "abcdefghijklmnopqrst"),
    "basic": ("Authorization: Basic {}", "dXNlcjpwYXNz"),
    "authorization": ("curl -H 'Authorization: {}'", "0123456789abcdef"),
    "authorization in capitals": ("AUTHORIZATION: {}", "0123456789abcdef"),
    "header in json": ('{{"Authorization": "Bearer {}"}}', "short.to-ken"),
    "cookie": ("Cookie: sid={}; theme=$THEME", "s3ss10n1d"),
    "cookie in capitals": ("COOKIE: sid={}", "s3ss10n1d"),
    "set-cookie": ("Set-Cookie: sid={}; Path=/; HttpOnly", "s3ss10n1d"),
    "password in a url": ("postgres://app:{}@db:5432/x", "hunter2"),
    "password without a user": ("redis://:{}@host:6379", "hunter2"),
    "token in a url": ("git clone https://{}@github.com/a/b", "0a1b2c3d4e5f"),
    "token as the user": ("https://{}:x-oauth-basic@github.com/a/b", "0a1b2c3d"),
    "aws settings": ("aws_secret_access_key = {}\nregion = eu-west-1", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    "aws variable": ("export AWS_SECRET_ACCESS_KEY='{}'", "a1B2" * 10),
    "aws session variable": ("AWS_SESSION_TOKEN={}", "IQoJb3JpZ2luX2VjEJ//" * 8),
    "aws field": ('{{"SecretAccessKey": "{}", "Expiration": "2026"}}', "a1B2" * 10),
    "aws element": ("<SessionToken>{}</SessionToken>", "IQoJb3JpZ2luX2VjEJ//" * 8 + "=="),
    "aws header": ("x-amz-security-token: {}", "IQoJb3JpZ2luX2VjEJ//" * 8 + "=="),
    "aws option": ("sessiontoken={}, region=eu-west-1", "IQoJb3JpZ2luX2VjEJ//" * 8 + "=="),
    "aws table": ("|  SecretAccessKey |  {}  |", "a1B2" * 10),
    "aws command": ("aws configure set aws_secret_access_key {} --profile x", "a1B2" * 10),
    "aws command for a session": ("aws configure set aws_session_token {}", "IQoJb3JpZ2luX2VjEJ//" * 8),
    "azure storage": ("AccountName=x;AccountKey={};EndpointSuffix=core.windows.net", "a1/+" * 21 + "a1=="),
    "slack hook": ("https://hooks.slack.com/services/{}", "T0000000/B0000000/abcdefgh"),
}
"""What is a secret because of what is around it."""
ORDINARY = {
    "assignment": 'SECRET_KEY = "change-me"; password = "hunter2hunter2"; token: str = "abcdef0123456789"',
    "json": json.dumps({"password": "correct horse", "api_key": "abcdef0123456789abcd"}),
    "annotation": "def f(password: str = '', api_key: str | None = None) -> None: ...",
    "variable in a header": 'headers = {"Authorization": f"Bearer {token}"}',
    "variable in a url": "postgres://$USER:${PASSWORD}@host/{database}",
    "other length": f"secret_access_key={'a1B2' * 11}, SecretAccessKey: {'a1B2' * 9}, session_token = {'a1' * 20}",
    "words of aws": f"the secret access key of {'a1B2' * 10}; secret key {'a1B2' * 11}; session token {'ab ' * 50}",
    "other issuers": f"dapi{'0g' * 16} dapi{'0a' * 17} r8_{'a1' * 30} hvs.short envs.{'a1' * 20} abQ~{'a' * 34}",
    "near model keys": f"FAQ.{'a1' * 30} disk-{'a1' * 30} nvapi-short ntn_{'a1' * 10} glrt-a bedrock-api-key-id",
    "near other keys": (
        f"fc-{'0a' * 15} nfc-{'0a' * 16} fc-{'0a' * 16}-f pul-{'0a' * 21} secret_{'a1' * 22} fw_{'a' * 24} "
        f"fw_{'a1' * 13} jina_{'a1' * 31} tskey-auth-id vck_ready sbp_{'0g' * 20} dp.st.value "
        f"dp.pt.{'a1' * 30} whsec_test figd_id"
    ),
    "other azure": f"AccountKey={'a1' * 20}== {'a1' * 40}JQQJ99{'a1' * 13} abc8Q~{'a1' * 8} abc8Q~{'a1' * 30}",
    "url parameter": "https://host/?api_key=short&a=b",
    "counts": '{"max_tokens": 4096, "input_tokens": 12} token=1234',
    "sha256": "sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit": "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "image": f"data:image/png;base64,{BODY}",
    "words": "task-management-for-everyone-and-all, disk-usage-analyzer-for-linux",
    "header of a key": BEGIN,
    "url": "https://docs.example/a:b and user@host and ssh://git@github.com/a/b",
    "public key": "-----BEGIN PUBLIC KEY-----\n" + "\n".join(LINES) + "\n-----END PUBLIC KEY-----",
    "prose": "Bearer of bad news; sk-short; a cookie: chocolate; the authorization: required",
}
ODD = 'p"a\\ss\n wörd-пароль/x'


def vault_of(*values: str) -> SecretVault:
    return SecretVault(values, key=lambda: b"k" * 32)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_keys_are_recognised_by_their_issuers_format(key: str) -> None:
    vault = vault_of()
    for text in (f"before {key} after", f"x={key}", json.dumps(json.dumps({"a": [key]}))):
        concealed = vault.conceal(text)
        assert key not in concealed
        assert len(list(tokens_in(concealed))) == 1
        assert vault.reveal(concealed) == text
    assert key not in json.dumps(redact({"a": [f"key={key}, ok"], key: 1}))


@pytest.mark.parametrize(("text", "secret"), AROUND.values(), ids=AROUND.keys())
def test_credentials_are_recognised_by_their_context(text: str, secret: str) -> None:
    vault, whole = vault_of(), text.format(secret)
    [token] = tokens_in(vault.conceal(whole))
    assert vault.conceal(whole) == text.format(token)
    assert vault.reveal(token) == secret
    assert secret not in vault.conceal(json.dumps({"x": whole}).replace("/", "\\/"))


def test_a_header_or_field_in_json_is_known_by_its_name() -> None:
    headers = {"Authorization": "Basic dXNlcjpwYXNz", "Cookie": "sid=s3ss10n1d; theme=dark", "Accept": "Basic text"}
    concealed = vault_of().conceal(headers)
    assert [len(list(tokens_in(value))) for value in concealed.values()] == [1, 2, 0]
    assert vault_of("hunter2hunter2").conceal({"Cookie": ["sid=1"], "Accept": 7}) == {"Cookie": ["sid=1"], "Accept": 7}
    fields = {"aws_secret_access_key": "a1B2" * 10, "SessionToken": "a1B2" * 30, "region": "a1B2" * 10}
    assert [len(list(tokens_in(value))) for value in vault_of().conceal(fields).values()] == [1, 1, 0]
    others = {"x-amz-security-token": "a1B2" * 30, "secret_access_key": "a1B2" * 10}
    assert [len(list(tokens_in(value))) for value in vault_of().conceal(others).values()] == [1, 1]


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        json.dumps(PEM),
        json.dumps(json.dumps({"key": PEM})),
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(PEM.split("\n"))),
        "\n".join(f"+{line}" for line in PEM.split("\n")),
        PEM[: len(PEM) // 2],
    ],
    ids=["plain", "escaped", "escaped twice", "numbered", "diff", "cut off"],
)
def test_private_key_blocks_are_replaced_line_by_line(text: str) -> None:
    vault = vault_of()
    concealed = vault.conceal(f"here: {text} and prose" if text.endswith(END) else text)
    assert not any(line[:20] in concealed for line in LINES)
    assert vault.reveal(concealed).startswith("here: " if text.endswith(END) else text)


@pytest.mark.parametrize(
    "found",
    [
        PEM.split("\n"),
        [{"path": "a/long/folder", "line": number, "text": line} for number, line in enumerate(PEM.split("\n"))],
        [{"text": PEM[:100], "more": [1]}, {"text": PEM[100:]}, {"text": None}, "a/long/folder"],
    ],
    ids=["items", "members", "two parts"],
)
def test_a_private_key_is_replaced_in_texts_of_their_own(found: list[Any]) -> None:
    vault = vault_of()
    for held in (found, [*found, "prose/after/it"], {"matches": found}):
        concealed = vault.conceal(held)
        assert not any(line[:20] in json.dumps(concealed) for line in LINES)
        assert vault.reveal(concealed) == held
        assert json.dumps(concealed).count("a/long/folder") == json.dumps(held).count("a/long/folder")


SECRETS = st.lists(
    st.text(min_size=8, max_size=24)
    | st.text(alphabet='ab"\\\n/é', min_size=8, max_size=12)
    | st.sampled_from(["hunter2hunter2", "hunter2hunter2hunter2", "2hunter2", "12345678", ODD, "[redacted:ab", PEM]),
    max_size=4,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def places(secrets: list[str]) -> list[str]:
    """Return texts that hold the secrets, alone, overlapping, as JSON text and as JSON text in JSON text."""
    together = [one[:-3] + other for one in secrets for other in secrets]
    texts = [*secrets, *together, *(f"https://u:{one}@h Cookie: a={one}" for one in secrets), "[redacted:0123456789ab]"]
    return [*texts, *map(json.dumps, texts), *(json.dumps(json.dumps({"a": one})) for one in texts)]


@given(SECRETS, JSON, st.data())
def test_concealed_text_is_restored_exactly(secrets: list[str], value: Any, data: st.DataObject) -> None:
    # Escapes of what need no escape are the one thing that is not given back byte for byte.
    secrets = [secret for secret in secrets if secret.isascii()]
    held = [value, *data.draw(st.lists(st.sampled_from([*places(secrets), *KEYS.values()]), max_size=4))]
    vault = vault_of(*secrets)
    assert vault.reveal(vault.conceal(held)) == held


@given(SECRETS)
@example(["12345678", ODD])
@example(["парольпароль"])
@example(['///""""¡'])
def test_no_secret_is_left_in_a_text(secrets: list[str]) -> None:
    vault = vault_of(*secrets)
    for text in secrets:
        concealed = vault.conceal(f"a {text} b")
        assert not [value for value in vault._values if value in concealed and value not in "[redacted:"]


@given(SECRETS, JSON)
def test_a_token_means_the_same_before_and_after_json_text_is_parsed(secrets: list[str], value: Any) -> None:
    vault, held = vault_of(*secrets), [value, *secrets, *KEYS.values(), PEM]
    for ascii_only in (True, False):
        text = json.dumps(held, ensure_ascii=ascii_only)
        assert vault.reveal(json.loads(vault.conceal(text))) == held
        nested = json.dumps({"arguments": text}, ensure_ascii=ascii_only)
        assert json.loads(vault.reveal(json.loads(vault.conceal(nested))["arguments"])) == held


@given(SECRETS, JSON)
def test_a_record_is_redacted_once(secrets: list[str], value: Any) -> None:
    vault = vault_of(*secrets)
    body = json.dumps([value, *places(secrets), *KEYS.values()]).encode()
    once = vault.redact_json(body)
    assert not [key for key in KEYS.values() if key.encode() in once]
    assert vault.redact_json(once) == once


def test_a_secret_with_quotes_is_found_at_any_level_of_json_text() -> None:
    vault, text = vault_of(ODD), ODD
    for _ in range(4):
        concealed = vault.conceal(text)
        assert not any(part in concealed for part in ("wörd", "пароль", "ss", "f6rd"))
        text = json.dumps(text)


def test_text_that_looks_like_a_token_is_never_treated_as_one() -> None:
    vault = vault_of("hunter2hunter2")
    [token] = tokens_in(vault.conceal("hunter2hunter2"))
    page = f"a page says {token}"
    assert "hunter2" not in vault.reveal(vault.conceal(page))
    assert vault.reveal(vault.conceal(page)) == page
    assert vault.reveal(vault.conceal(page, keep_tokens=True)) == "a page says hunter2hunter2"


def test_a_number_of_json_stays_a_number() -> None:
    vault = vault_of("12345678")
    assert vault.conceal({"pin": 12345678}) == {"pin": 12345678}
    for text in ('{"pin": 12345678}', "[12345678, 1]", "id 9123456780, 12345678.5"):
        assert vault.conceal(text) == text
    for text in ('{"pin": "12345678"}', "pin 12345678.", "pin=12345678", "the pin 12345678, or (12345678]"):
        assert "12345678" not in vault.conceal(text)


def test_a_digest_depends_only_on_the_users_key() -> None:
    def made(key: bytes) -> SecretVault:
        return SecretVault(["hunter2hunter2"], key=lambda: key)

    first, again, other = made(b"a"), made(b"a"), made(b"b")
    assert first.conceal("hunter2hunter2") == again.conceal("hunter2hunter2") != other.conceal("hunter2hunter2")
    # A token that another process wrote is known before the secret itself was seen.
    [token] = tokens_in(again.conceal("hunter2hunter2"))
    assert made(b"a").reveal(token) == "hunter2hunter2"


def test_the_names_in_schemas_are_keys_and_what_names_or_enumerates() -> None:
    properties = {"colour": {"enum": ["dark_red", 1]}, "kind": {"const": "exact"}}
    schema = {"name": "look_up", "parameters": {"properties": properties, "required": ["colour"]}}
    keys = {"name", "parameters", "properties", "colour", "enum", "kind", "const", "required"}
    assert names_in([schema]) == keys | {"look_up", "dark_red", "exact"}


def test_secrets_that_overlap_are_hidden_as_one() -> None:
    vault = vault_of("abcdefghij", "ghijklmnop")
    concealed = vault.conceal("x abcdefghijklmnop y")
    assert TOKEN.sub("*", concealed) == "x * y"
    assert vault.reveal(concealed) == "x abcdefghijklmnop y"


def test_protocol_field_names_are_not_secrets() -> None:
    def names() -> frozenset[str]:
        return frozenset({"password", "arguments"})

    vault = SecretVault(["password", "argument", "password1"], names, key=lambda: b"k")
    assert vault.conceal({"password": "argument password1"})["password"].startswith("argument [redacted:")


def test_a_token_is_not_cut_apart() -> None:
    vault = vault_of("hunter2hunter2")
    text = vault.conceal("say hunter2hunter2 twice")
    [token] = tokens_in(text)
    assert {text[: cut_place(text, at)] for at in range(len(text))} == {
        *(text[:at] for at in range(5)),
        *(text[:at] for at in range(4 + len(token), len(text))),
    }
    assert vault.reveal(text[:20]) == "say …"
    assert vault.reveal("[redacted:zz and [redacted:1") == "[redacted:zz and [redacted:1"


def test_variables_are_secrets_by_their_name_and_form(tmp_path: Path) -> None:
    environ = {
        "OPENAI_API_KEY": "0123456789",
        "DB_PASSWORD": " correct horse ",
        "ACCESSKEY": "abcdefgh",
        "MY_AUTH": "abcd1234",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=abcd%20efgh,other=ijklmnop",
        "DATABASE_URL": "postgres://app:s3cr3tpw@db/x",
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1",
        "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "credentials.json"),
        "SSH_KEY": "~/.ssh/id_ed25519",
        "AUTH_URL": "https://login.example.com/oauth",
        "PWD": "/home/somebody",
        "GIT_AUTHOR_NAME": "Somebody Else",
        "TOKENIZERS_PARALLELISM": "disabled",
        "KEYBOARD_LAYOUT": "something",
    }
    found = {"0123456789", "correct horse", "abcdefgh", "abcd1234", "abcd efgh", "ijklmnop", "s3cr3tpw"}
    assert set(secret_values(environ)) == found
    assert vault_of("short", "disabled").conceal("short disabled") == "short disabled"


def test_options_of_a_command_are_secrets_by_their_name() -> None:
    arguments = ["-y", "server", "--token", "t0ken-value", "--api-key=abcdefgh", "--port", "8080", "--verbose", "x"]
    assert list(argument_secrets(arguments)) == ["t0ken-value", "abcdefgh"]
    assert list(argument_secrets(["--header", "Authorization: Basic dXNlcjpwYXNz"])) == ["dXNlcjpwYXNz"]
    assert list(url_secrets("https://me:p%40ss@host")) == ["p%40ss", "p@ss"]
    assert list(url_secrets("https://host:8080/x")) == []


def test_json_without_secrets_is_unchanged() -> None:
    body = b'{"a": ["x", 1.50]}'
    assert redact_json(body) is body
    value = {"a": ["x", {"b": None}]}
    vault = vault_of("hunter2hunter2")
    assert vault.conceal(value) is value
    assert vault.reveal(value) is value


def test_the_users_key_is_created_once_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    key = user_key()
    [file] = (tmp_path / "state" / "aeon").iterdir()
    assert file.read_bytes() == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert user_key() == key


def test_the_users_key_is_stored_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "link", refused)
    key = user_key()
    assert [path.read_bytes() for path in (tmp_path / "aeon").iterdir()] == [key]


def test_without_storage_the_key_belongs_to_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert user_key() == user_key()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "piece",
    [f"{BEGIN}\n", "-eyJaaaaaaaaaa", "eyJaaaaaaaaaa.", "://a:", "Cookie: a=", "Authorization: ", "\\", "\\u0041", "-"],
)
def test_long_texts_are_read_in_linear_time(piece: str) -> None:
    with cpu_limit(20):
        vault_of("hunter2hunter2").conceal(piece * (100_000 // len(piece)) + " hunter2hunter2 eyJ")


@pytest.mark.parametrize("secret", ["парольпароль", "密码密码密码密码", '日本"日本/日本'])
@pytest.mark.parametrize("write", [str, json.dumps, lambda text: json.dumps(text, ensure_ascii=False)])
def test_a_secret_without_a_single_ascii_letter_is_replaced(secret: str, write: Callable[[str], str]) -> None:
    concealed = vault_of(secret).conceal(write(f"a {secret} b"))
    assert "[redacted:" in concealed
    assert not any(part in concealed for part in ("пароль", "密码", "日本", "\\u"))

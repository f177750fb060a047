from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.redaction import REDACTED, holds_secret, redact, redact_json, redact_text

AWS_SECRET = "wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCY" + "0123456789"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJlLW9mLWl0"
BODY = base64.b64encode(bytes(range(256)) * 4).decode()
LINES = [BODY[at : at + 64] for at in range(0, len(BODY), 64)]
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
PEM = "\n".join([BEGIN, *LINES, END])

FORMS = {
    "anthropic": "sk-" + "ant-" + "x" * 30,
    "openai": "sk-" + "proj-" + "a1" * 20,
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "github": "ghp_" + "a" * 36,
    "gitlab": "glpat-" + "a1" * 10,
    "slack": "xoxb-" + "1234567890",
    "slack hook": "https://hooks.slack.com/services/" + "T0000000/B0000000/abcdefgh",
    "google": "AIza" + "b" * 35,
    "stripe": "sk_" + "live_" + "a1" * 10,
    "hugging face": "hf_" + "a" * 34,
    "bedrock": "ABSK" + "QmVk" * 20,
    "jwt": JWT,
    "bearer": "Bearer " + "abcdefghijklmnopqrst",
    "url": "https://name:" + "pass@host/path",
    "url without name": "redis://:" + "pass@host:6379",
    "url parameter": "https://host/?api_key=" + "short&a=b",
}
NAMED = {
    "yaml": "api_key: abc123def",
    "yaml in lines": "    12\tpassword: hunter22",
    "shell": "export OPENAI_API_KEY='abcdefgh'",
    "environment": "DB_PASS=abcdefgh",
    "environment of mysql": "MYSQL_PWD=abcdefgh",
    "option": "--pass=hunter2xyz",
    "form": "password=correcthorse",
    "connection": "host=db user=x password=correcthorse dbname=y",
    "azure": "AccountName=x;AccountKey=abcDEF123+/==;EndpointSuffix=y",
    "aws file": f"aws_secret_access_key = {AWS_SECRET}",
    "aws json": f'"SecretAccessKey": "{AWS_SECRET}"',
    "json": '{"password": "hunter"}',
    "json in json": json.dumps(json.dumps({"x": '{"password": "hunter"}'})),
    "python": "connect(password='hunter')",
    "prose": "the API key: abc123def456",
    "token": "token: abcdef0123456789abcd",
    "header": "x-api-key: 0123abcd",
    "basic": "Authorization: Basic dXNlcjpwYXNz",
    "basic in json": '{"Authorization": "Basic dXNlcjpwYXNz"}',
    "bearer in lower case": "authorization: bearer abc.def-123",
}
ORDINARY = {
    "annotation": "password: str",
    "annotation with a default": "def f(password: str = '', api_key: str | None = None) -> None: ...",
    "typescript": "const token: string = await next(); let password: string;",
    "keyword": "client(api_key=api_key, password=self.password)",
    "call": "password = getpass.getpass()",
    "environment": 'api_key=os.environ["API_KEY"]',
    "variable": "password=$PASSWORD api_key: ${API_KEY}",
    "placeholder": "api_key: <your key>, password: ********",
    "name of a variable": '"api_key": "OPENAI_API_KEY"',
    "schema": '"properties": {"password": {"type": "string"}}',
    "comparison": "if password == 'abcdef': ...",
    "prose": "the password: must be at least 8 characters; Password: required",
    "test results": "PASS: tests/login1.js pass: test_login1 passed=12",
    "message": '{"password": "This field is required."}',
    "counts": '{"max_tokens": 4096, "input_tokens": 12} token=1234',
    "working directory": "PWD=/home/me/project1 OLDPWD=/home/me/project2",
    "type of a token": "token_type: bearer, tokenizer: cl100k_base_for_models1",
    "other keys": "primary_key: id12345678, public_key=abcdef1234567890, key=value12345678901234",
    "md5": "d41d8cd98f00b204e9800998ecf8427e",
    "sha256": "sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit": "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "image": f"data:image/png;base64,{BODY}",
    "words": "task-management-for-everyone-and-all, disk-usage-analyzer-for-linux",
    "header of a key": BEGIN,
    "url": "https://docs.example/a:b and user@host",
    "public key": "-----BEGIN PUBLIC KEY-----\n" + "\n".join(LINES) + "\n-----END PUBLIC KEY-----",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_keys_are_known_by_their_form(text: str) -> None:
    assert holds_secret(text)
    assert text[-8:] not in redact_text(f"before {text} after") or "@host" in text or "&a=b" in text
    assert redact_text(f"before {text} after").startswith("before ")


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED.keys())
def test_values_are_known_by_their_name(text: str) -> None:
    assert REDACTED in redact_text(text)
    for secret in ("abc123", "hunter", "abcdefgh", "correcthorse", "abcDEF", "0123abcd", "dXNl", "abc.def", AWS_SECRET):
        assert secret not in redact_text(text)


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\\n"),
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(PEM.split("\n"))),
        "\n".join(f"+{line}" for line in PEM.split("\n")),
        PEM[: len(PEM) // 2],
    ],
    ids=["plain", "escaped", "numbered", "diff", "cut off"],
)
def test_private_key_blocks_are_replaced(text: str) -> None:
    redacted = redact_text(f"here: {text}")
    assert redacted.startswith("here: ")
    assert REDACTED in redacted
    assert not any(line[:20] in redacted for line in LINES)


def test_what_follows_a_private_key_stays() -> None:
    assert redact_text(f"{PEM}\nand prose") == f"{BEGIN}{REDACTED}{END}\nand prose"


def test_a_member_is_judged_by_its_name() -> None:
    value = {"db.password": "hunter", "token": "abc", "api_key": ["x"], "nested": [{"client_secret": "abcdef"}], "n": 1}
    assert redact(value) == {
        "db.password": REDACTED,
        "token": "abc",
        "api_key": ["x"],
        "nested": [{"client_secret": REDACTED}],
        "n": 1,
    }


def test_json_without_secrets_comes_back_as_it_is() -> None:
    body = b'{"a": ["x", 1.50]}'
    assert redact_json(body) is body
    assert json.loads(redact_json(b'{"a": "password=hunter22"}')) == {"a": f"password={REDACTED}"}


_PIECES = st.sampled_from(
    [*FORMS.values(), *NAMED.values(), "password", "token", "=", ": ", '"', "'", "\\", " ", "\n", "://", "@", "a1b2c3"]
)


@given(st.lists(_PIECES | st.text(max_size=6), max_size=8).map("".join))
def test_what_is_redacted_holds_no_secret_any_more(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.dictionaries(st.sampled_from(["password", "token", "api_key", "x"]), _PIECES, max_size=3))
def test_what_is_redacted_stays_so_as_json_text(value: dict[str, Any]) -> None:
    text = json.dumps(redact(value), ensure_ascii=False)
    assert redact(json.loads(redact_text(text))) == redact(value)


@pytest.mark.parametrize(
    "piece",
    [
        BEGIN + "\n",
        "-eyJaaaaaaaaaa",
        "eyJaaaaaaaaaa.",
        "password=",
        "token=  ",
        "password\\",
        "api_key=a1",
        "://a:",
        "-",
    ],
)
def test_long_texts_are_read_in_linear_time(piece: str) -> None:
    start = time.process_time()
    redact_text(piece * (200_000 // len(piece)))
    # No measurement: time that grows with the square of the length would be minutes.
    assert time.process_time() - start < 10

"""BedrockClient: where region and credentials come from, what is said where they are missing, cutting a connection."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import SSLError

from aeon_core.errors import LLMError, ModelUnavailableError, UsageError
from aeon_core.llm import bedrock
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.bedrock import BedrockClient, BedrockModel
from aeon_core.llm.http import Sockets
from tests.aeon_core.llm.converse_server import (
    ACCESS_KEY,
    ROLE_KEY,
    ROLE_TOKEN,
    SECRET_KEY,
    SESSION_TOKEN,
    TokenService,
    answer_with,
    no_credentials,
    refused,
    said,
    set_credentials,
    token_service,
)
from tests.aeon_core.llm.server import Reply, Server
from tests.waiting import PATIENCE

ROLE = "arn:aws:iam::123456789012:role/reader"
MESSAGES = [{"role": "user", "content": [{"text": "hi"}]}]
API_KEY = "bedrock-api-key-" + "b" * 24


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(monkeypatch, tmp_path)


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenService]:
    set_credentials(monkeypatch)
    with token_service(monkeypatch) as service:
        yield service


def unavailable(**options: Any) -> str:
    """Return what is said where no connection can be made, and see that it is one line without a secret."""
    with pytest.raises(ModelUnavailableError) as caught:
        BedrockClient(**options).connect()
    assert caught.value.exit_code == 3
    assert "\n" not in caught.value.message
    for secret in (SECRET_KEY, SESSION_TOKEN, API_KEY, ACCESS_KEY):
        assert secret not in caught.value.message
    return caught.value.message


def authorization(client: Any) -> str:
    requests = answer_with(client, said())
    client.converse(modelId="m", messages=MESSAGES)
    header = requests[0].headers["Authorization"]
    return header.decode() if isinstance(header, bytes) else str(header)


def test_importing_the_module_loads_no_sdk_and_configures_no_logging() -> None:
    code = (
        "import logging, sys; before = list(logging.root.handlers); import aeon_core.llm.bedrock as b; "
        "b.BedrockModel('m'); assert logging.root.handlers == before; "
        "sys.exit(any(name in sys.modules for name in ('boto3', 'botocore', 'urllib3')))"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run([sys.executable, "-c", code], cwd=root / "core", capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_connecting_configures_no_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    before = list(logging.root.handlers)
    BedrockClient().connect()
    assert logging.root.handlers == before


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bedrock, "find_spec", lambda name: None)
    assert "pip install 'aeon-tui[bedrock]'" in unavailable()
    assert "aeon-tui[bedrock]" in str(BedrockClient().missing())
    with pytest.raises(ModelUnavailableError, match="bedrock"):
        BedrockModel("m")


def test_without_credentials_the_ways_to_set_them_are_named() -> None:
    message = unavailable()
    for way in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "`aws sso login`"):
        assert way in message
    assert BedrockClient().missing() == message
    assert BedrockClient().missing() is not None


def test_half_a_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    assert "AWS_SECRET_ACCESS_KEY" in unavailable()
    assert BedrockClient().missing() is not None


def test_an_unknown_profile_is_named() -> None:
    assert "nowhere" in unavailable(profile="nowhere")
    assert "nowhere" in str(BedrockClient(profile="nowhere").missing())


def test_without_a_region_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    monkeypatch.delenv("AWS_REGION")
    assert "AWS_REGION" in unavailable()
    assert BedrockClient(region="us-east-1").missing() is None


def test_an_invalid_region_is_reported_like_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    assert "us east" in unavailable(region="us east")


@pytest.mark.parametrize("bad", [{"endpoint_url": "nowhere"}, {"timeout": 0}, {"timeout": float("nan")}])
def test_a_bad_address_or_time_out_is_a_usage_error(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"nowhere|timeout"):
        BedrockClient(**bad)


def test_region_precedence_is_argument_variable_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_credentials(monkeypatch)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    (tmp_path / "aws-config").write_text("[default]\nregion = eu-north-1\n", encoding="utf-8")
    found = [BedrockClient(region="us-east-2").connect().meta.region_name]
    found.append(BedrockClient().connect().meta.region_name)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
        found.append(BedrockClient().connect().meta.region_name)
    assert found == ["us-east-2", "eu-west-1", "us-west-2", "eu-north-1"]


def test_a_profiles_credentials_precede_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_credentials(monkeypatch)
    other = "AK" + "IA" + "Y" * 16
    lines = ["[work]", f"aws_access_key_id = {other}", f"aws_secret_access_key = {SECRET_KEY}"]
    (tmp_path / "aws-credentials").write_text("\n".join(lines), encoding="utf-8")
    assert f"Credential={other}/" in authorization(BedrockClient(profile="work").connect())
    assert f"Credential={ACCESS_KEY}/" in authorization(BedrockClient().connect())


def test_the_client_sends_one_request_with_the_timeout_and_names_aeon(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    config = BedrockClient(timeout=77.0).connect().meta.config
    assert (config.retries["total_max_attempts"], config.read_timeout, config.connect_timeout) == (1, 77.0, 10.0)
    assert "aeon/" in config.user_agent_extra


def test_an_api_key_needs_no_other_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", API_KEY)
    client = BedrockClient()
    assert client.missing() is None
    assert authorization(client.connect()) == f"Bearer {API_KEY}"
    assert list(client.secrets) == [API_KEY]


def test_an_api_key_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", API_KEY)
    assert "only sent to https addresses" in unavailable(endpoint_url="http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "only sent to https addresses" in unavailable()


def test_a_role_is_assumed_at_connection(sts: TokenService) -> None:
    client = BedrockClient(role_arn=ROLE).connect()
    asked = [sts.asked[0][key] for key in ("Action", "RoleArn", "RoleSessionName")]
    assert asked == ["AssumeRole", ROLE, "aeon"]
    requests = answer_with(client, said())
    client.converse(modelId="m", messages=MESSAGES)
    assert ROLE_KEY in str(requests[0].headers["Authorization"])
    assert ROLE_TOKEN in str(requests[0].headers["X-Amz-Security-Token"])
    assert len(sts.asked) == 1


def test_a_role_takes_precedence_over_an_api_key(sts: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", API_KEY)
    assert f"Credential={ROLE_KEY}/" in authorization(BedrockClient(role_arn=ROLE).connect())


def test_a_roles_credentials_are_renewed_before_they_expire(sts: TokenService) -> None:
    sts.expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 700))
    client = BedrockClient(role_arn=ROLE).connect()
    before = len(sts.asked)
    sts.expiration = "2099-01-01T00:00:00Z"
    answer_with(client, said(), said())
    for _ in range(2):
        client.converse(modelId="m", messages=MESSAGES)
    assert len(sts.asked) == before + 1


def test_a_role_that_is_refused_during_a_run_is_no_matter_of_the_models_rights(sts: TokenService) -> None:
    sts.expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 500))
    model = BedrockModel("m", role_arn=ROLE)
    model.check()
    sts.refusal = (403, "AccessDenied", "not authorized to perform: sts:AssumeRole")
    with pytest.raises(LLMError, match=r"perform: sts:AssumeRole; set AWS_PROFILE") as caught:
        model.complete(LLMRequest("reason", "", [{"role": "user", "content": "hi"}]))
    assert (caught.value.retryable, caught.value.exit_code) == (False, 3)


def test_a_role_that_is_refused_is_named_after_one_request(sts: TokenService) -> None:
    sts.refusal = (403, "AccessDenied", f"not authorized: x-amz-security-token:{SESSION_TOKEN}")
    message = unavailable(role_arn=ROLE)
    assert f"cannot assume the role '{ROLE}': AccessDenied" in message
    assert len(sts.asked) == 1
    sts.refusal = (403, "SignatureDoesNotMatch", "Signature expired: it is too late")
    assert unavailable(role_arn=ROLE).endswith("too late; set this machine's clock")


def test_a_token_service_that_fails_is_asked_once(sts: TokenService) -> None:
    sts.refusal = (500, "InternalFailure", "busy")
    assert "InternalFailure: busy" in unavailable(role_arn=ROLE)
    assert len(sts.asked) == 1


def test_checking_credentials_contacts_nobody(sts: TokenService, server: Server) -> None:
    assert BedrockClient(role_arn=ROLE).missing() is None
    assert BedrockClient(endpoint_url=server.url).missing() is None
    assert (sts.asked, server.requests) == ([], [])


def test_checking_credentials_runs_no_command_and_contacts_no_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "aws-config").write_text(f"[default]\ncredential_process = touch {ran}\n", encoding="utf-8")
    assert BedrockClient().missing() is None
    assert not ran.exists()
    (tmp_path / "aws-config").unlink()
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/")
    assert BedrockClient().missing() is None


def test_checking_credentials_contacts_no_metadata_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with socket.create_server(("127.0.0.1", 0)) as service:
        address = f"http://127.0.0.1:{service.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        assert "no AWS credentials" in str(BedrockClient().missing())
        service.setblocking(False)
        with pytest.raises(BlockingIOError):
            service.accept()


def test_a_profiles_own_role_is_assumed_at_connection_too(sts: TokenService, tmp_path: Path) -> None:
    sts.refusal = (403, "AccessDenied", "not authorized")
    lines = ["[profile r]", f"role_arn = {ROLE}", "credential_source = Environment"]
    (tmp_path / "aws-config").write_text("\n".join(lines), encoding="utf-8")
    assert "AccessDenied: not authorized" in unavailable(profile="r")
    assert len(sts.asked) == 1


def test_a_profile_that_needs_an_mfa_code_is_refused(tmp_path: Path) -> None:
    lines = ["[profile mfa]", f"role_arn = {ROLE}", "source_profile = default", "mfa_serial = arn:aws:iam::1:mfa/me"]
    (tmp_path / "aws-config").write_text("\n".join(lines), encoding="utf-8")
    assert "MFA code" in unavailable(profile="mfa")
    assert "MFA code" in str(BedrockClient(profile="mfa").missing())


def test_a_role_on_the_way_that_needs_an_mfa_code_is_refused(tmp_path: Path) -> None:
    inner = ["[profile inner]", f"role_arn = {ROLE}", "source_profile = default", "mfa_serial = arn:aws:iam::1:mfa/me"]
    outer = ["[profile outer]", f"role_arn = {ROLE}", "source_profile = inner"]
    (tmp_path / "aws-config").write_text("\n".join([*inner, *outer]), encoding="utf-8")
    assert "MFA code" in unavailable(profile="outer")


def test_an_mfa_device_matters_only_to_a_role(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = "mfa_serial = arn:aws:iam::1:mfa/me"
    keys = [f"aws_access_key_id = {ROLE_KEY}", f"aws_secret_access_key = {SECRET_KEY}"]
    role = [device, f"role_arn = {ROLE}", "source_profile = user"]
    lines = ["[default]", *role, "[profile user]", device, *keys]
    (tmp_path / "aws-config").write_text("\n".join(lines), encoding="utf-8")
    assert f"Credential={ROLE_KEY}/" in authorization(BedrockClient(profile="user").connect())
    set_credentials(monkeypatch)  # as `aws-vault exec` does, of a session that had the code
    assert f"Credential={ACCESS_KEY}/" in authorization(BedrockClient().connect())
    assert BedrockClient().missing() is None
    assert "MFA code" in unavailable(profile="default")


def test_a_missing_login_names_the_profile_to_log_in_with(tmp_path: Path) -> None:
    lines = ['[profile "our sso"]', "sso_session = corp", "sso_account_id = 1", "sso_role_name = dev"]
    lines += ["[sso-session corp]", "sso_start_url = https://corp.example/start", "sso_region = eu-west-1"]
    lines += ["[profile role]", f"role_arn = {ROLE}", "source_profile = our sso"]
    (tmp_path / "aws-config").write_text("\n".join(lines), encoding="utf-8")
    for profile in ("our sso", "role"):
        message = unavailable(profile=profile)
        assert message.endswith("; run `aws sso login --profile 'our sso'`")
        assert BedrockClient(profile=profile).missing() == message
    login = tmp_path / ".aws" / "sso" / "cache" / f"{sha1(b'corp').hexdigest()}.json"
    login.parent.mkdir(parents=True)
    login.write_text('{"accessToken": "t", "expiresAt": "2099-01-01T00:00:00Z"}', encoding="utf-8")
    assert BedrockClient(profile="role").missing() is None


def test_a_refused_login_or_key_is_named_during_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("botocore.credentials.SSOProvider.load", lambda _: None)
    keys = [f"aws_access_key_id = {ROLE_KEY}", f"aws_secret_access_key = {SECRET_KEY}"]
    (tmp_path / "aws-config").write_text("\n".join(["[profile sso]", "sso_account_id = 1", *keys]), encoding="utf-8")
    assert "too old; run `aws sso login --profile sso`" in refusal_of(BedrockModel("m", profile="sso"))
    monkeypatch.setattr("botocore.credentials.LoginProvider.load", lambda _: None)
    (tmp_path / "aws-config").write_text("\n".join(["[profile me]", "login_session = arn", *keys]), encoding="utf-8")
    assert "too old; run `aws login --profile me`" in refusal_of(BedrockModel("m", profile="me"))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", API_KEY)
    assert "too old; set a valid key in AWS_BEARER_TOKEN_BEDROCK" in refusal_of(BedrockModel("m"))


def refusal_of(model: BedrockModel) -> str:
    answer_with(model._aws.connect(), refused("ExpiredTokenException", "too old", 403))
    with pytest.raises(LLMError) as caught:
        model.complete(LLMRequest("reason", "", [{"role": "user", "content": "hi"}]))
    return caught.value.message


def test_a_credential_process_without_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "aws-config").write_text("[default]\ncredential_process = echo please log in\n", encoding="utf-8")
    assert "credential_process of the AWS profile did not print JSON" in unavailable()


def test_a_token_service_that_cannot_be_reached_is_no_matter_of_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)
    message = unavailable(role_arn=ROLE)
    assert f"cannot assume the role '{ROLE}': cannot reach {address}" in message
    assert message.endswith("; check the network and the region")
    refusal = SSLError(endpoint_url=address, error=OSError("[SSL: CERTIFICATE_VERIFY_FAILED] no issuer"))
    assert BedrockClient()._unusable(refusal).message.endswith("set AWS_CA_BUNDLE to a file with the issuer's")


def test_a_silent_metadata_service_means_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        assert "no AWS credentials" in unavailable()


def test_the_metadata_service_is_awaited_briefly_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits = [BedrockClient()._session().get_config_variable("metadata_service_timeout")]
    (tmp_path / "aws-config").write_text("[default]\nmetadata_service_timeout = 3\n", encoding="utf-8")
    waits.append(BedrockClient()._session().get_config_variable("metadata_service_timeout"))
    monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "4")
    waits.append(BedrockClient()._session().get_config_variable("metadata_service_timeout"))
    assert waits == [0.5, 3, 4]


def test_a_client_is_made_once_and_remade_after_it_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    client = BedrockClient()
    first = client.connect()
    assert client.connect() is first
    client.close()
    client.close()
    assert client.closings == 2
    assert client.connect() is not first


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply('{"a"', hang_after=True)], ids=["silent", "cut"])
def test_closing_cuts_a_direct_call(monkeypatch: pytest.MonkeyPatch, server: Server, reply: Reply) -> None:
    set_credentials(monkeypatch)
    server.script(reply)
    client = BedrockClient(endpoint_url=server.url, timeout=3_600.0)
    ended = threading.Event()

    def call() -> None:
        # botocore makes an empty reply of a body that was cut.
        with contextlib.suppress(Exception):
            client.connect().converse(modelId="m", messages=MESSAGES)
        ended.set()

    thread = threading.Thread(target=call)
    thread.start()
    assert server.arrived.acquire(timeout=PATIENCE)
    client.close()
    assert ended.wait(PATIENCE)
    thread.join()


def test_a_connection_closed_while_connecting_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    client = BedrockClient()
    make = client._make

    def made_too_late(sockets: Sockets) -> Any:
        made = make(sockets)
        client.close()
        return made

    monkeypatch.setattr(client, "_make", made_too_late)
    with pytest.raises(ModelUnavailableError, match="closed while it was made"):
        client.connect()
    monkeypatch.setattr(client, "_make", make)
    assert client.connect() is client.connect()


def test_with_another_botocore_closing_cannot_cut_a_call(caplog: pytest.LogCaptureFixture) -> None:
    client = object()
    assert bedrock.watched(client, Sockets()) is client
    assert "cannot be interrupted" in caplog.text

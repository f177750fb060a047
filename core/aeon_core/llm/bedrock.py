"""Amazon Bedrock (Decision 1; system2 REQ-060…065, REQ-161): the AWS session, and its Converse API as an adapter.

The only module that imports boto3, and only when a connection is made. It needs the extra `bedrock`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
import weakref
from collections import deque
from importlib.util import find_spec
from typing import Any

from aeon_core.errors import AeonError, ModelUnavailableError
from aeon_core.installation import missing_extra, versions
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint, check_timeout, find_url
from aeon_core.llm.converse import RENEW, ConverseModel, code_of, reason, scrubbed
from aeon_core.llm.errors import one_line

logger: logging.Logger = logging.getLogger("aeon")


class Sockets:
    """What the watched clients have opened. Once cut, whatever they open later is cut at once too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._cut = False

    def watch(self, client: Any) -> Any:
        """Return the boto3 client, whose connections from now on are known here."""
        try:
            pools = client._endpoint.http_session._pool_classes_by_scheme
            pools.update({scheme: self._watched(pool) for scheme, pool in pools.items()})
        except AttributeError as error:
            # The pools are botocore's own business: without them calls work, and end by their time-out alone.
            logger.warning("bedrock: a call in flight cannot be interrupted with this botocore: %s", error)
        return client

    def cut(self) -> None:
        """Shut every connection; from any thread."""
        with self._lock:
            self._cut = True
            known = list(self._open)
        for opened in known:
            _shut(opened)

    def _watched(self, pool: Any) -> Any:
        base = pool.ConnectionCls

        def connect(connection: Any) -> None:
            base.connect(connection)
            # Under TLS within TLS, as behind some proxies, the socket is wrapped again.
            self._opened(getattr(connection.sock, "socket", connection.sock))

        watched = type(base.__name__, (base,), {"connect": connect})
        return type(pool.__name__, (pool,), {"ConnectionCls": watched})

    def _opened(self, opened: Any) -> None:
        if not isinstance(opened, socket.socket):
            return
        with self._lock:
            self._open.add(opened)
            too_late = self._cut
        if too_late:
            _shut(opened)


def _shut(opened: socket.socket) -> None:
    # The plain socket's method: the TLS one would wait for, or spoil, the read that is to be woken.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


_SERVICE = "bedrock-runtime"
_API_KEY = "AWS_BEARER_TOKEN_BEDROCK"
_NO_CREDENTIALS = f"no AWS credentials for Amazon Bedrock: {RENEW}"
_CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_BY_NETWORK = ("container-role", "iam-role", "custom-process")
_BY_PROFILE = ("credential_process", "credential_source")
_METADATA = "metadata_service_timeout"
_METADATA_TIMEOUT = 0.5
_MAX_CONNECT = 10.0


class BedrockClient:
    """Everything that is boto3: session, profile, role, region, endpoint, and the sockets of calls in flight.

    The region is `region`, else AWS_REGION, AWS_DEFAULT_REGION or the profile's; credentials come from boto3's chain
    (environment, `profile` or AWS_PROFILE, single sign-on, container, instance) or the API key in
    AWS_BEARER_TOKEN_BEDROCK; with `role_arn` they are traded for that role's, and again before they expire. `timeout`
    is the silence to bear in seconds. Raises UsageError for a bad endpoint URL or time-out.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        profile: str | None = None,
        role_arn: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._region = region
        self._profile = profile
        self._role_arn = role_arn
        self.endpoint_url: str | None = find_url(endpoint_url, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        self.timeout: float = check_timeout(timeout)
        self.closings: int = 0
        """How often `close()` was called: a call that sees it grow was cut."""
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._client: Any = None
        self._sockets = Sockets()
        self._sent: deque[str] = deque(maxlen=16)
        self._received = threading.local()

    @property
    def client(self) -> Any:
        """Return the boto3 `bedrock-runtime` client, connected when first needed. Raises as `connect()` does."""
        return self.connect()

    def connect(self) -> Any:
        """Return the boto3 `bedrock-runtime` client, its credentials found and its role assumed; no call is billed.

        Raises ModelUnavailableError (exit 3; system2 REQ-093) that names what is missing: the package, the region,
        credentials, or the right to assume the role.
        """
        with self._connecting:
            with self._lock:
                if self._client is not None:
                    return self._client
                sockets = self._sockets
            client = self._made(sockets)
            with self._lock:
                if sockets is self._sockets:
                    self._client = client
                    return client
        client.close()
        raise ModelUnavailableError("the connection to Amazon Bedrock was closed while it was made")

    def close(self) -> None:
        """Cut what is in flight and release the client; from any thread. A later call reconnects."""
        with self._lock:
            self.closings += 1
            client, self._client = self._client, None
            sockets, self._sockets = self._sockets, Sockets()
        sockets.cut()
        if client is not None:
            client.close()

    def is_available(self) -> bool:
        """Return whether package, region and credentials are there, as `missing()` finds them."""
        return self.missing() is None

    def missing(self) -> str | None:
        """Return in one line what is missing, None where nothing is. No network call is made.

        So the role of an EC2 instance is not seen here, and credentials that are there may still be refused.
        """
        try:
            _check_package()
            session = self._session()
            self._check(session)
            if not self._has_key() and not _has_credentials(session):
                return _NO_CREDENTIALS
        except ModelUnavailableError as error:
            return error.message
        except Exception as error:
            return self._unusable(error).message
        return None

    def secrets(self) -> tuple[str, ...]:
        """Return what the last requests were authorized with, so that no message repeats it."""
        return tuple(self._sent)

    def take_body(self) -> bytes | None:
        """Return the body of the last reply on this thread as it came, once: botocore hides what it cannot read."""
        body = getattr(self._received, "body", None)
        self._received.body = None
        return body if isinstance(body, bytes) else None

    def _made(self, sockets: Sockets) -> Any:
        _check_package()
        try:
            session = self._session()
            self._check(session)
            if not self._has_key():
                credentials = _credentials(session)
                session = self._in_role(credentials, sockets) if self._role_arn else session
            import boto3

            client = boto3.Session(botocore_session=session).client(_SERVICE, endpoint_url=self.endpoint_url)
        except AeonError:
            raise
        except Exception as error:
            raise self._unusable(error) from None
        client.meta.events.register(f"before-send.{_SERVICE}", self._remember_sent)
        client.meta.events.register(f"before-parse.{_SERVICE}", self._remember_received)
        return sockets.watch(client)

    def _session(self) -> Any:
        import botocore.config
        import botocore.configprovider
        import botocore.session

        session = botocore.session.Session(profile=self._profile)
        region = self._region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
        session.set_config_variable("region", region)
        if not os.environ.get("AWS_METADATA_SERVICE_TIMEOUT") and not session.get_scoped_config().get(_METADATA):
            # Off AWS nobody answers there: two look-ups of a second each would stall a laptop. The variable of the
            # session holds whole seconds only.
            wait = botocore.configprovider.ConstantProvider(_METADATA_TIMEOUT)
            session.get_component("config_store").set_config_provider(_METADATA, wait)
        options: dict[str, Any] = {
            "connect_timeout": min(self.timeout, _MAX_CONNECT),
            "read_timeout": self.timeout,
            "retries": {"total_max_attempts": 1},
            "user_agent_extra": f"aeon/{versions()['aeon']}",
        }
        if self._role_arn:
            # Else an API key in the environment would win over the role that was asked for.
            options["signature_version"] = "v4"
        session.set_default_client_config(botocore.config.Config(**options))
        return session

    def _check(self, session: Any) -> None:
        if not session.get_config_variable("region"):
            raise ModelUnavailableError("no AWS region for Amazon Bedrock: set AWS_REGION, such as us-east-1")
        if self._has_key() and (self.endpoint_url or "").startswith("http:"):
            raise ModelUnavailableError(
                f"the key in {_API_KEY} is only sent to https addresses; for another address unset it, and {RENEW}"
            )
        # botocore would ask for the code on the terminal, which may belong to the app, or to nobody.
        if session.get_scoped_config().get("mfa_serial"):
            raise ModelUnavailableError(
                "the AWS profile asks for an MFA code, which cannot be entered here; "
                "export the credentials of a session that has one, or use a profile with `aws sso login`"
            )

    def _has_key(self) -> bool:
        """Return whether an API key replaces credentials; a requested role takes precedence."""
        return bool(os.environ.get(_API_KEY)) and not self._role_arn

    def _in_role(self, source: Any, sockets: Sockets) -> Any:
        """Return a session with the role's credentials, which renews them before they expire."""
        from botocore import credentials as aws

        sts = self._session()

        def create(*args: Any, **options: Any) -> Any:
            return sockets.watch(sts.create_client(*args, **options))

        fetcher = aws.AssumeRoleCredentialFetcher(
            create, source, self._role_arn, extra_args={"RoleSessionName": "aeon"}
        )
        assumed = aws.DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
        assumed.get_frozen_credentials()
        session = self._session()
        session.register_component("credential_provider", aws.CredentialResolver([_Assumed(assumed)]))
        return session

    def _unusable(self, error: Exception) -> ModelUnavailableError:
        response = getattr(error, "response", None)
        told = reason(error)
        if isinstance(response, dict):
            told = f"{code_of(response)}: {(response.get('Error') or {}).get('Message') or ''}"
        what = f"cannot assume the role {self._role_arn!r}" if self._role_arn else "cannot use Amazon Bedrock"
        place = Endpoint("bedrock", "", "", None, _API_KEY, os.environ.get(_API_KEY) or PLACEHOLDER_KEY)
        why = one_line(scrubbed(told), place)[:160]
        return ModelUnavailableError(f"{what}: {why}; {RENEW}")

    def _remember_sent(self, request: Any, **_: Any) -> None:
        for name in ("Authorization", "X-Amz-Security-Token"):
            value = request.headers.get(name)
            text = value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
            # The header holds its secret last: `Bearer …`, or `AWS4-HMAC-SHA256 …, Signature=…`.
            secret = re.split(r"Bearer |Signature=", text)[-1].strip()
            if secret and secret not in self._sent:
                self._sent.append(secret)

    def _remember_received(self, response_dict: dict[str, Any], **_: Any) -> None:
        self._received.body = response_dict.get("body")


class BedrockModel(ConverseModel):
    """A model behind Converse. `name` is a model's id, an inference profile such as `us.anthropic.…`, or an ARN.

    `base_url` replaces the service's address. With a `client` the other options are its own; closing the model
    closes it. Raises UsageError for a bad base URL or time-out, ModelUnavailableError (exit 3) for a missing package.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        timeout: float = 120.0,
        client: BedrockClient | None = None,
        region: str | None = None,
        profile: str | None = None,
        role_arn: str | None = None,
    ) -> None:
        _check_package()
        made = (
            BedrockClient(region=region, profile=profile, role_arn=role_arn, endpoint_url=base_url, timeout=timeout)
            if client is None
            else client
        )
        super().__init__(name, made)
        self.base_url: str | None = made.endpoint_url


def bedrock_status(*, region: str | None = None, profile: str | None = None, role_arn: str | None = None) -> str | None:
    """Return in one line what Amazon Bedrock lacks here, None where nothing. No network call is made."""
    return BedrockClient(region=region, profile=profile, role_arn=role_arn).missing()


class _Assumed:
    """A place where botocore finds credentials: those of the role."""

    METHOD = "assume-role"

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load(self) -> Any:
        return self._credentials


def _check_package() -> None:
    if find_spec("boto3") is None:
        raise ModelUnavailableError(missing_extra("Amazon Bedrock", "bedrock").message)


def _credentials(session: Any) -> Any:
    credentials = session.get_credentials()
    if credentials is None:
        raise ModelUnavailableError(_NO_CREDENTIALS)
    credentials.get_frozen_credentials()
    return credentials


def _has_credentials(session: Any) -> bool:
    """Return whether the chain finds credentials, or names where to get them, without asking anybody."""
    profile = session.get_scoped_config()
    if any(os.environ.get(name) for name in _CONTAINER) or any(profile.get(key) for key in _BY_PROFILE):
        return True
    resolver = session.get_component("credential_provider")
    for method in _BY_NETWORK:
        resolver.remove(method)
    return resolver.load_credentials() is not None

"""Credentials of AWS profiles, roles, single sign-on and processes, by botocore where it is installed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._libraries import is_installed
from deltafast.exceptions import InvalidArgumentError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AwsProfile", "chosen_profile"]

#: Names of storage options, without `aws_`, and of the variables for them.
_PROFILE = ("profile",)
_ROLE = ("iam_role_arn", "s3_assume_role_arn")
_SESSION_NAME = ("iam_role_session_name", "s3_role_session_name")
#: Options, without `aws_`, and variables with which the core has credentials of its own.
_OWN_NAMES = (
    "access_key_id",
    "skip_signature",
    "web_identity_token_file",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
)
#: The files with profiles: the variable with the path, and the usual path.
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}


class AwsProfile(NamedTuple):
    """A credential provider: a profile of `~/.aws`, by botocore, which must be installed.

    botocore knows keys, roles with a source profile, single sign-on (`aws sso login`), `credential_process` and the
    services of the machine.

    Examples:
        >>> DeltaTable("s3://bucket/events", credential_provider=AwsProfile("work"))          # doctest: +SKIP
    """

    #: Name of the profile; the one of `AWS_PROFILE`, else `default`, if None.
    profile: str | None = None
    #: A role to assume with the credentials of the profile.
    role_arn: str | None = None
    #: Name of the session of that role.
    role_session_name: str = "deltafast"

    def __call__(self) -> dict[str, Any]:
        """Return the credentials.

        Raises:
            MissingLibraryError: botocore is not installed.
            PermissionError: botocore found no credentials; the message names the places where it looked.
        """
        session = self._session()
        if self.role_arn is not None:
            return self._of_role(session)
        found = session.get_credentials()
        if found is None:
            tried = [provider.METHOD for provider in session.get_component("credential_provider").providers]
            message = f"botocore finds no credentials for {self._name()}; it tried {', '.join(tried)}"
            raise PermissionError(message)
        keys = found.get_frozen_credentials()
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            # Credentials that botocore renews have this member; there is no public one.
            "expires_at": getattr(found, "_expiry_time", None),
        }

    @property
    def region(self) -> str | None:
        """The region of the profile."""
        return cast("str | None", self._session().get_scoped_config().get("region"))

    def _of_role(self, session: Any) -> dict[str, Any]:
        found = session.create_client("sts").assume_role(RoleArn=self.role_arn, RoleSessionName=self.role_session_name)[
            "Credentials"
        ]
        return {
            "access_key_id": found["AccessKeyId"],
            "secret_access_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expires_at": found["Expiration"],
        }

    def _name(self) -> str:
        return "the default profile" if self.profile is None else f"the profile {self.profile}"

    def _session(self) -> Any:
        if not is_installed("botocore"):
            message = f"{self._name()} of AWS needs botocore, which is not installed: pip install botocore"
            raise MissingLibraryError(message)
        return _session(self.profile)


@lru_cache(maxsize=8)
def _session(profile: str | None) -> Any:
    from botocore.exceptions import ProfileNotFound  # pyright: ignore[reportMissingTypeStubs]
    from botocore.session import Session  # pyright: ignore[reportMissingTypeStubs]

    session: Any = Session(profile=profile)
    try:
        # The service of roles and tokens has to be in some region.
        if session.get_config_variable("region") is None:
            session.set_config_variable("region", "us-east-1")
    except ProfileNotFound as error:
        raise InvalidArgumentError(str(error)) from None
    return session


def chosen_profile(options: Mapping[str, str]) -> AwsProfile | None:
    """Return the profile that storage options, or else the environment and `~/.aws`, name for S3.

    None if the core has credentials of its own: keys, tokens of a pod or a container, or no signatures; and where only
    the files of `~/.aws` would speak for a profile, but botocore is not installed.
    """
    given = {key.strip().lower().removeprefix("aws_"): value for key, value in options.items()}

    def first(names: tuple[str, ...]) -> str | None:
        return next((given[name] for name in names if given.get(name)), None)

    profile, role = first(_PROFILE), first(_ROLE)
    if profile is None and role is None:
        if any(given.get(name) or os.environ.get(f"AWS_{name.upper()}") for name in _OWN_NAMES):
            return None
        is_named = bool(os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE"))
        if not is_named and not (_has_files() and is_installed("botocore")):
            return None
    return AwsProfile(profile, role, first(_SESSION_NAME) or "deltafast")


def _has_files() -> bool:
    paths = (os.environ.get(name) or usual for name, usual in _FILES.items())
    return any(Path(path).expanduser().is_file() for path in paths)

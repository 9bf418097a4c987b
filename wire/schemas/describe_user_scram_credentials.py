"""DescribeUserScramCredentials (API key 50), version 0, flexible: which SCRAM credentials users
have.

If `users` is null, all are described.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int8, int16, int32, message, string, struct


@struct
class UserName:
    name: str = string()


@message(api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    users: list[UserName] | None = array(UserName, nullable="0+")


@struct
class CredentialInfo:
    mechanism: int = int8()
    iterations: int = int32()


@struct
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@message(api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)

"""S3 that takes only keys that were issued to the client and have not expired."""

from __future__ import annotations

import itertools
import re
import time
from datetime import UTC, datetime, timedelta

import servers

#: Seconds for which a key of `KeyServer` is valid.
LIFE = 3.0


class KeyServer(servers.Proxy):
    """S3 that takes only keys that it issued and that have not expired; it counts the others."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._numbers = itertools.count()
        self._keys: dict[str, float] = {}
        self.refused: list[str] = []
        self.issued = 0
        #: Beginning of the keys that another service issues.
        self.foreign = "-"

    def issue(self, life: float = LIFE) -> dict[str, object]:
        """Return a key, in the form of obstore's providers."""
        key = f"KEY{next(self._numbers)}"
        self._keys[key] = time.time() + life
        self.issued += 1
        expires = datetime.now(UTC) + timedelta(seconds=life)
        return {"access_key_id": key, "secret_access_key": "SECRET", "token": f"TOKEN-{key}", "expires_at": expires}

    def forget(self) -> None:
        """Count from zero."""
        super().forget()
        self.refused.clear()
        self.issued = 0
        self.foreign = "-"

    def answer(self, method, target, headers, body):
        """Hand the request on if its key is valid."""
        given = {name.lower(): value for name, value in headers.items()}
        found = re.search(r"Credential=([^/]+)/", given.get("authorization", ""))
        key = found[1] if found else ""
        if key.startswith(self.foreign):
            return super().answer(method, target, headers, body)
        if self._keys.get(key, 0) < time.time() or given.get("x-amz-security-token") != f"TOKEN-{key}":
            self.refused.append(f"{method} {target}")
            return servers.Answer(403, {}, b"<Error><Code>ExpiredToken</Code></Error>")
        return super().answer(method, target, headers, body)


def options(server: KeyServer) -> dict[str, str]:
    """Return `storage_options` without credentials."""
    return {"aws_endpoint_url": server.url, "aws_region": "eu-west-1", "allow_http": "true", "max_retries": "0"}

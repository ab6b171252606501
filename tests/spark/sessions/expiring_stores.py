"""Stores with credentials that expire after seconds, as catalogs give them: what the tests of such tables need to know."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any, Protocol

import pyspark

import servers
from cloud_storage import CloudStorage
from data_lake import DataLakeProxy, SignatureProxy
from expiring_keys import KeyServer, options

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds for which credentials are valid: the first request of a process takes two on a busy machine.
LIFE = 10.0
#: Secrets: they are in no message and no plan.
SECRETS = ("SECRET", "sig=")
#: The Google Cloud Storage connector, in the form that does not conflict with Spark's libraries, as for Ivy.
_CONNECTOR = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="deltafast" module="tests"/>
<dependencies>
<dependency org="com.google.cloud.bigdataoss" name="gcs-connector" rev="hadoop3-2.2.26" transitive="false">
<artifact name="gcs-connector" type="jar" m:classifier="shaded"/>
</dependency>
</dependencies>
</ivy-module>
"""
_CACHE = pathlib.Path(servers.__file__).parent / ".cache"


class ExpiringStore(Protocol):
    """A store that takes only credentials that it issued and that have not expired."""

    #: The URL of a folder.
    root: str
    #: `storage_options` without credentials.
    options: dict[str, str]
    #: How many credentials were issued.
    issued: int

    def credentials(self, location: str, operation: str) -> tuple[dict[str, str], float]:
        """Return new credentials, by their names in the Delta API, and when they expire."""
        ...

    def provider(self) -> dict[str, Any]:
        """Return new credentials, as a credential provider does."""
        ...

    def settings(self) -> dict[str, str]:
        """Return settings of Spark that lead here, without credentials."""
        ...

    def forget(self) -> None:
        """Count from zero."""
        ...

    def refused(self) -> list[str]:
        """Return the requests whose credentials were missing or had expired."""
        ...


class S3Store:
    """S3: moto, which ignores keys, behind a proxy that does not."""

    root = "s3://bucket/warehouse"

    def __init__(self, keys: KeyServer) -> None:
        self._keys = keys
        self.options = options(keys)

    @property
    def issued(self) -> int:
        """See `ExpiringStore`."""
        return self._keys.issued

    def credentials(self, _location: str, _operation: str) -> tuple[dict[str, str], float]:
        """See `ExpiringStore`."""
        key = self._keys.issue(LIFE)
        config = {"s3.access-key-id": str(key["access_key_id"]), "s3.secret-access-key": "SECRET"}
        return config | {"s3.session-token": str(key["token"])}, time.time() + LIFE

    def provider(self) -> dict[str, Any]:
        """See `ExpiringStore`."""
        return self._keys.issue(LIFE)

    def settings(self) -> dict[str, str]:
        """See `ExpiringStore`."""
        found = {"endpoint": self._keys.url, "endpoint.region": "eu-west-1", "path.style.access": "true"}
        found |= {"attempts.maximum": "1", "retry.limit": "1"}
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in found.items()}

    def forget(self) -> None:
        """See `ExpiringStore`."""
        self._keys.forget()

    def refused(self) -> list[str]:
        """See `ExpiringStore`."""
        return self._keys.refused


class AzureStore:
    """Azurite: for deltafast the API of Blob Storage, for Hadoop that of Data Lake Storage."""

    def __init__(self, container: servers.Azure, blobs: SignatureProxy, lake: DataLakeProxy) -> None:
        self._container, self._blobs, self._lake = container, blobs, lake
        self.root = f"abfss://{container.container}@{container.account}.dfs.core.windows.net/warehouse"
        self.options = container.options(azure_storage_endpoint=f"{blobs.url}/{container.account}", max_retries="0")
        del self.options["azure_storage_account_key"]
        self.issued = 0

    def credentials(self, _location: str, _operation: str) -> tuple[dict[str, str], float]:
        """See `ExpiringStore`."""
        self.issued += 1
        # Azure counts whole seconds.
        return {"azure.sas-token": self._container.signature(LIFE)}, int(time.time() + LIFE)

    def provider(self) -> dict[str, Any]:
        """See `ExpiringStore`."""
        config, expires = self.credentials("", "")
        return {"sas_token": config["azure.sas-token"], "expires_at": expires}

    def settings(self) -> dict[str, str]:
        """See `ExpiringStore`."""
        # The scheme of a catalog's locations, without TLS.
        found = {"abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem"}
        found |= {"azure.abfs.endpoint": self._lake.url.removeprefix("http://"), "azure.always.use.https": "false"}
        found |= {"azure.account.hns.enabled": "true", "azure.io.retry.max.retries": "1"}
        # The other library needs what Hadoop sets up for TLS only.
        found["azure.networking.library"] = "JDK_HTTP_URL_CONNECTION"
        return {f"spark.hadoop.fs.{name}": value for name, value in found.items()}

    def forget(self) -> None:
        """See `ExpiringStore`."""
        self._blobs.refused.clear()
        self._lake.refused.clear()
        self.issued = 0

    def refused(self) -> list[str]:
        """See `ExpiringStore`."""
        return self._blobs.refused + self._lake.refused


class GoogleStore:
    """Google Cloud Storage: for deltafast its XML API, for Hadoop its JSON API."""

    root = "gs://bucket/warehouse"

    def __init__(self, bucket: CloudStorage) -> None:
        self._bucket = bucket
        self.options = bucket.options(max_retries="0")
        del self.options["google_bearer_token"]

    @property
    def issued(self) -> int:
        """See `ExpiringStore`."""
        return self._bucket.issued

    def credentials(self, _location: str, _operation: str) -> tuple[dict[str, str], float]:
        """See `ExpiringStore`."""
        token, expires = self._bucket.issue(LIFE)
        return {"gcs.oauth-token": token}, expires

    def provider(self) -> dict[str, Any]:
        """See `ExpiringStore`."""
        token, expires = self._bucket.issue(LIFE)
        return {"token": token, "expires_at": expires}

    def settings(self) -> dict[str, str]:
        """See `ExpiringStore`."""
        found = {"impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem", "storage.root.url": self._bucket.url}
        # Without a login of its own.
        found |= {"auth.service.account.enable": "false", "auth.null.enable": "true", "http.max.retry": "1"}
        return {f"spark.hadoop.fs.gs.{name}": value for name, value in found.items()}

    def forget(self) -> None:
        """See `ExpiringStore`."""
        self._bucket.forget()

    def refused(self) -> list[str]:
        """See `ExpiringStore`."""
        return self._bucket.refused


def connector() -> str:
    """Return the path of the Google Cloud Storage connector, from Maven Central where it is missing."""
    folder = _CACHE / "gcs-connector"
    if not folder.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        (ivy,) = pathlib.Path(pyspark.__file__).with_name("jars").glob("ivy-*.jar")
        # Test processes running side by side may all fetch it; the first to finish wins.
        with tempfile.TemporaryDirectory(dir=_CACHE, prefix="gcs-connector-") as scratch:
            module = pathlib.Path(scratch, "ivy.xml")
            module.write_text(_CONNECTOR)
            command = ["java", "-jar", str(ivy), "-warn", "-ivy", str(module)]
            command += ["-retrieve", f"{scratch}/found/[artifact]-[revision].[ext]"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with contextlib.suppress(OSError):
                pathlib.Path(scratch, "found").rename(folder)
    (jar,) = folder.glob("*.jar")
    return str(jar)


@contextlib.contextmanager
def running() -> Iterator[dict[str, ExpiringStore]]:
    """Run the stores; the core finds Azurite by the environment."""
    with contextlib.ExitStack() as stack:
        bucket = stack.enter_context(servers.s3())
        keys = stack.enter_context(KeyServer(bucket.port).running())
        container = stack.enter_context(servers.azure(servers.azurite(_CACHE)))
        blobs = stack.enter_context(SignatureProxy(container.port).running())
        lake = stack.enter_context(DataLakeProxy(container.port).running())
        google = stack.enter_context(CloudStorage().running())
        found = AzureStore(container, blobs, lake)
        os.environ |= {name.upper(): value for name, value in found.options.items() if name.startswith("azure_")}
        os.environ["AZURE_ALLOW_HTTP"] = "true"
        yield {"s3": S3Store(keys), "azure": found, "google": GoogleStore(google)}

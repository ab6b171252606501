"""A Hadoop cluster of this machine: one name node and one data node, in a process of their own."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is resolved from Maven Central by Spark itself, without what it depends on: that is in PySpark. JUnit is for the
#: cluster's own looking for folders.
_PACKAGES = ("org.apache.hadoop:hadoop-client-minicluster:3.5.0", "org.junit.jupiter:junit-jupiter-api:5.13.4")


@contextlib.contextmanager
def running(jvm: Any) -> Iterator[str]:
    """Start a cluster, whose jars this Java resolves; gives the URL of its root, without a slash at the end."""
    jars: list[str] = []
    for package in _PACKAGES:
        found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
            jvm.java.net.URI(f"ivy://{package}?transitive=false")
        )
        jars += [str(found.apply(n)).removeprefix("file:") for n in range(found.size())]
    if len(jars) < len(_PACKAGES):
        message = f"the tests on HDFS need {' and '.join(_PACKAGES)} from Maven Central; there is {jars}"
        raise RuntimeError(message)
    jars.append(str(pathlib.Path(pyspark.__file__).with_name("jars") / "*"))
    with tempfile.TemporaryDirectory(prefix="hdfs-") as folder:
        details, log = pathlib.Path(folder, "details.json"), pathlib.Path(folder, "log")
        command = ["java", "-Xmx384m", f"-Dtest.build.data={folder}"]
        command += ["-cp", ":".join(jars), "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-nnport", "0"]
        command += ["-datanodes", "1", "-writeDetails", str(details), "-D", "dfs.permissions.enabled=true"]
        with log.open("wb") as out, subprocess.Popen(command, cwd=folder, stdout=out, stderr=out) as process:
            try:
                for _ in range(600):
                    if (details.exists() and details.read_text()) or process.poll() is not None:
                        break
                    time.sleep(0.1)
                if not details.exists():
                    message = f"HDFS did not start: {log.read_text()[-2000:]}"
                    raise RuntimeError(message)
                yield f"hdfs://localhost:{json.loads(details.read_text())['namenode_port']}"
            finally:
                process.kill()


def tree(spark: Any, url: str) -> list[str]:
    """All files below a folder, hidden ones too, relative to it."""
    path = spark._jvm.org.apache.hadoop.fs.Path(url)
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(path):
        return []
    found, out = files.listFiles(path, True), []
    root = str(files.makeQualified(path).toString())
    while found.hasNext():
        out.append(str(found.next().getPath().toString()).removeprefix(root).lstrip("/"))
    return sorted(out)

"""What makes the many short-lived processes of Spark quick; most of it they take from their environment.

As a program, with folders of PySpark as arguments: prepares those that need it, which takes about half a minute each.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

#: Compiling for speed costs more than it gives to short jobs, and so do threads that collect garbage. Java that
#: compiles in this way keeps 48 MB of code, less than Spark has: the rest would be thrown away and compiled again.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

#: Seconds in which `TRAINING` ends.
_TRAINING = 180.0

#: Loads the classes that sessions of the tests load.
TRAINING = """
from pyspark.sql import SparkSession, functions

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
spark = builder.config("spark.connect.grpc.binding.port", "0").getOrCreate()
path = "{folder}/rows"
rows = spark.createDataFrame([(1, "a", 1.5), (2, "b", 2.5)], "id int, p string, v double")
rows.write.partitionBy("p").parquet(path)
read = spark.read.parquet(path)
read.createOrReplaceTempView("read")
spark.sql("select p, sum(v), max(id) from read where id > 0 group by p order by p").collect()
read.join(rows, "id").withColumn("s", functions.struct("id")).distinct().collect()
stream = spark.readStream.schema(read.schema).parquet(path).writeStream.format("noop")
stream.option("checkpointLocation", "{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def settings(spark: pathlib.Path) -> dict[str, str]:
    """Return the variables of processes that run a Spark.

    Args:
        spark: The folder of PySpark.
    """
    home = _home(spark)
    archive = home / "classes.jsa"
    # Java with another class path goes on without the archive, and is not to say so.
    shared = f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off" if archive.is_file() else ""
    return {"SPARK_HOME": str(home), "JDK_JAVA_OPTIONS": JAVA + shared}


def is_prepared(spark: pathlib.Path) -> bool:
    """Return whether this module, as it is now, has prepared the release of Spark.

    Args:
        spark: The folder of PySpark.
    """
    archive = _home(spark) / "classes.jsa"
    return archive.is_file() and archive.stat().st_mtime > pathlib.Path(__file__).stat().st_mtime


def prepare(spark: pathlib.Path) -> None:
    """Store the classes of Spark in the form that Java maps into memory: a session then starts in half the time.

    Args:
        spark: The folder of PySpark.

    Raises:
        RuntimeError: If Java wrote no archive.
    """
    home = _home(spark)
    archive, made = home / "classes.jsa", home / f"classes.{os.getpid()}.jsa"
    archive.unlink(missing_ok=True)
    variables = os.environ | settings(spark) | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(spark.parent)}
    variables["JDK_JAVA_OPTIONS"] += f" -XX:ArchiveClassesAtExit={made}"
    with tempfile.TemporaryDirectory(prefix="training-") as folder:
        program = [sys.executable, "-c", TRAINING.replace("{folder}", folder)]
        run = subprocess.run(
            program, cwd=folder, env=variables, capture_output=True, text=True, timeout=_TRAINING, check=False
        )
    if run.returncode or not made.is_file():
        message = f"Java stored no classes of {spark}:\n{run.stdout}{run.stderr}"
        raise RuntimeError(message)
    made.rename(archive)


def _home(spark: pathlib.Path) -> pathlib.Path:
    """Return a home for Spark, making it where it is missing.

    Spark's Pythons import PySpark from a zip file that holds sources alone, so that each would compile all of it anew.
    The home has the installed folder, which is compiled, in the zip file's place.
    """
    version = re.search(r"__version__[^=]*=\s*[\"']([^\"']+)", (spark / "version.py").read_text())
    assert version, f"{spark / 'version.py'} has no version"
    home = pathlib.Path(sys.prefix) / f"spark-home-{version[1]}"
    if home.is_dir():
        return home
    part = pathlib.Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    for found in spark.iterdir():
        if found.name != "python":
            (part / found.name).symlink_to(found)
    libraries = part / "python" / "lib"
    (libraries / "pyspark.zip").mkdir(parents=True)
    (libraries / "pyspark.zip" / "pyspark").symlink_to(spark)
    for found in (spark / "python" / "lib").glob("py4j-*.zip"):
        (libraries / found.name).symlink_to(found)
    # Another process may have made it meanwhile.
    with contextlib.suppress(OSError):
        part.rename(home)
    shutil.rmtree(part, ignore_errors=True)
    return home


def remember_java_names() -> None:
    """Let Py4J remember what a name such as `org.apache.spark` is: to find out, Java searches hundreds of archives."""
    from py4j import java_gateway

    if java_gateway.JavaPackage.__getattr__.__module__ == __name__:
        return
    roots = ("com", "io", "java", "org", "scala")
    of_view, of_package = java_gateway.JVMView.__getattr__, java_gateway.JavaPackage.__getattr__
    known: dict[tuple[Any, str], Any] = {}

    def name_of_view(view: Any, name: str) -> Any:
        if name in roots:
            return java_gateway.JavaPackage(name, view._gateway_client, jvm_id=view._id)
        return of_view(view, name)

    def name_of_package(package: Any, name: str) -> Any:
        key = package._gateway_client, f"{package._fqn}.{name}"
        found = known.get(key)
        if found is None:
            found = of_package(package, name)
            # A package may become a class when an archive is added.
            if isinstance(found, java_gateway.JavaClass) or name.islower():
                known[key] = found
        return found

    java_gateway.JVMView.__getattr__ = name_of_view
    java_gateway.JavaPackage.__getattr__ = name_of_package


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        folder = pathlib.Path(argument).resolve()
        if not is_prepared(folder):
            prepare(folder)

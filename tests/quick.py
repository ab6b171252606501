"""What makes the many short-lived processes of Spark quick; each takes it from its environment."""

from __future__ import annotations

import atexit
import pathlib
import shutil
import tempfile

#: Compiling for speed costs more than it gives to short jobs, and so do threads that collect garbage. Java that
#: compiles in this way keeps 48 MB of code, less than Spark has: the rest would be thrown away and compiled again.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


def settings(spark: pathlib.Path) -> dict[str, str]:
    """Return the variables of processes that run a Spark.

    Spark's Pythons import PySpark from a zip file that holds sources alone, so that each would compile all of it anew.
    This makes a home for Spark that has the installed folder, which is compiled, in the zip file's place.

    Args:
        spark: The folder of PySpark.
    """
    home = pathlib.Path(tempfile.mkdtemp(prefix="spark-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for found in spark.iterdir():
        if found.name != "python":
            (home / found.name).symlink_to(found)
    libraries = home / "python" / "lib"
    (libraries / "pyspark.zip").mkdir(parents=True)
    (libraries / "pyspark.zip" / "pyspark").symlink_to(spark)
    for found in (spark / "python" / "lib").glob("py4j-*.zip"):
        (libraries / found.name).symlink_to(found)
    return {"SPARK_HOME": str(home), "JDK_JAVA_OPTIONS": JAVA}

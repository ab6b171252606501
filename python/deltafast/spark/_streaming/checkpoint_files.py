"""Small files below the checkpoint of a query, accessed as Spark accesses its own: through the driver's Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltafast.spark._session.session import Session

__all__ = ["CheckpointFolder"]

#: The companion object of Spark's class, which Spark 4.1 moved to another package.
_MANAGER = "CheckpointFileManager$"


class CheckpointFolder:
    """A folder of a checkpoint.

    Args:
        session: A classic session.
        path: The folder's path or URL.
    """

    def __init__(self, session: Session, path: str) -> None:
        self._jvm = session.jvm
        self._settings = session.spark._jsparkSession.sessionState().newHadoopConf()
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(self._settings)

    @property
    def location(self) -> str:
        """The folder's location with its scheme, as Spark writes it."""
        return str(self._files.makeQualified(self._path).toString())

    def names(self) -> list[str]:
        """Return the names of the files; there are none if the folder does not exist."""
        if not self._files.exists(self._path):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._path)]

    def read(self, name: str) -> str:
        """Return the contents of a file."""
        source = self._files.open(self._file(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(source, "UTF-8"))
        finally:
            source.close()

    def create(self, name: str, text: str) -> bool:
        """Write a file at once; return false if it exists."""
        target = self._file(name)
        if self._files.exists(target):
            return False
        manager = self._manager()
        manager.mkdirs(self._path)
        out = manager.createAtomic(target, False)
        try:
            out.write(text.encode())
            out.close()
        except BaseException as error:
            out.cancel()
            if "FileAlreadyExistsException" in str(getattr(error, "java_exception", "")):
                return False
            raise
        return True

    def _file(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def _manager(self) -> Any:
        """Return Spark's writer of checkpoints, which replaces no file that exists."""
        spark = self._jvm.org.apache.spark.sql.execution.streaming
        found = getattr(spark.checkpointing, _MANAGER)
        # A package that does not exist is an empty one.
        found = found if type(found).__name__ == "JavaClass" else getattr(spark, _MANAGER)
        return getattr(found, "MODULE$").create(self._path, self._settings)

"""Java classes that are compiled in the driver by Janino, Spark's own compiler, so that no jar has to be installed.

Their byte code is written to a jar of a few kilobytes, which is added to the driver's class loader and, where they are
needed there, to the executors. The package name contains a hash of the source: releases of deltafast that share a
driver have classes of their own, and Python processes that share one find a class that another has compiled. Sources
are compiled one by one and do not see each other: a line `// include NAME` appends a file with classes that several
need.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Protocol

__all__ = ["JavaSession", "UnavailableError", "call_static", "first_line", "load", "none", "on_executors"]

_PACKAGE = "package deltafast;"
_INCLUDE = re.compile(r"^// include (\S+)$", re.MULTILINE)
#: The folder of the sources.
_SOURCES = Path(__file__).parents[1]
_LOADER = "org.apache.spark.util.MutableURLClassLoader"


#: The classes, by the Java virtual machine that loaded them and their source.
_LOADED: dict[tuple[Any, str], Any] = {}


class JavaSession(Protocol):
    """A classic session, which has access to the driver's Java."""

    #: The `SparkSession`.
    spark: Any

    @property
    def jvm(self) -> Any:
        """The driver's Java."""
        ...

    def settings(self, prefix: str) -> dict[str, str]:
        """The session's settings that begin with `prefix`, without it."""
        ...


class UnavailableError(Exception):
    """A class cannot be compiled, loaded or sent."""


def load(session: JavaSession, source: str, name: str, service: str | None = None) -> Any:
    """Load a class for every thread of the driver.

    Args:
        session: A session that is not of Connect.
        source: The file with its source in the folder `deltafast/spark`, in the package `deltafast` or in a package of
            Spark whose members it accesses.
        name: Its name, without its package.
        service: The interface for which its jar registers it with Java's service loader.

    Returns:
        The `java.lang.Class`.

    Raises:
        UnavailableError: This Spark cannot compile or load it.
    """
    key = (session.spark._sc._gateway, source)
    if key in _LOADED:
        return _LOADED[key]
    text = _source(source)
    package = f"deltafast.x{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    text = text.replace(_PACKAGE, f"package {package};", 1)
    full = f"{text.partition(';')[0].removeprefix('package ')}.{name}"
    try:
        found = _found(session, full)
        if found is None:
            jar = _jar(session, text, full, service)
            _add(session, jar)
            found = _loader(session).loadClass(full)
    except Exception as error:
        message = first_line(error)
        raise UnavailableError(message) from error
    _LOADED[key] = found
    return found


def _source(name: str) -> str:
    """Return a source with the files that it includes."""
    text = (_SOURCES / name).read_text(encoding="utf-8")
    included: list[str] = _INCLUDE.findall(text)
    return "\n".join([text, *(_source(other) for other in included)])


def on_executors(session: JavaSession, kind: Any, probe: str) -> None:
    """Make a class available to the executors.

    Args:
        session: A session.
        kind: The class, from `load`.
        probe: The name of a function in the same package that an executor runs to check that it has the class.

    Raises:
        UnavailableError: The executors cannot load it.
    """
    context = session.spark._sc
    if context._jsc.sc().isLocal():
        # The executor is a thread of the driver.
        return
    # Other contexts of the same Java have other executors.
    asked = (str(context._jsc.sc().applicationId()), str(kind.getName()))
    if asked not in _SENT:
        try:
            context._jsc.addJar(str(kind.getProtectionDomain().getCodeSource().getLocation().toString()))
            package = kind.getName().rpartition(".")[0]
            function = _loader(session).loadClass(f"{package}.{probe}").getConstructors()[0].newInstance(none(session))
            numbers = session.jvm.java.util.ArrayList()
            numbers.add(1)
            context._jsc.parallelize(numbers, 1).map(function).collect()
            _SENT[asked] = None
        except Exception as error:  # noqa: BLE001 - after any error the next query need not try again
            _SENT[asked] = first_line(error)
    failure = _SENT[asked]
    if failure is not None:
        raise UnavailableError(failure)


#: The error, if any, of sending a class to the executors, by application and class.
_SENT: dict[tuple[str, str], str | None] = {}


def call_static(session: JavaSession, kind: Any, name: str, *arguments: Any) -> Any:
    """Call the one static method of a class that has this name."""
    # Of the class alone: py4j asks for the name of each method by a call of its own, and Spark's classes have many.
    method = next(method for method in kind.getDeclaredMethods() if method.getName() == name)
    given = session.spark._sc._gateway.new_array(session.jvm.java.lang.Object, len(arguments))
    for place, argument in enumerate(arguments):
        given[place] = argument
    return method.invoke(None, given)


def none(session: JavaSession) -> Any:
    """Return an empty argument list."""
    return session.spark._sc._gateway.new_array(session.jvm.java.lang.Object, 0)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, of the Java error if it is one."""
    cause: Any = getattr(error, "java_exception", None)
    text = str(cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__


def _loader(session: JavaSession) -> Any:
    return session.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()


def _found(session: JavaSession, name: str) -> Any:
    try:
        return _loader(session).loadClass(name)
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)
        if cause is not None and cause.getClass().getSimpleName() == "ClassNotFoundException":
            return None
        raise


def _add(session: JavaSession, jar: str) -> None:
    loader = _loader(session)
    if session.jvm.java.lang.Class.forName(_LOADER).isInstance(loader):
        # This makes it available to every thread of the driver; executors need not fetch what they do not use.
        loader.addURL(session.jvm.java.io.File(jar).toURI().toURL())
    else:
        session.spark._jsparkSession.sessionState().resourceLoader().addJar(jar)


def _jar(session: JavaSession, text: str, name: str, service: str | None) -> str:
    """Compile a source into a jar."""
    compiler = session.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(_loader(session))
    compiler.cook(text)
    folder = tempfile.TemporaryDirectory(prefix="deltafast-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / f"{name.replace('.', '-')}.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for kind, code in dict(compiler.getBytecodes()).items():
            archive.writestr(str(kind).replace(".", "/") + ".class", bytes(code))
        if service is not None:
            archive.writestr(f"META-INF/services/{service}", name + "\n")
    return str(path)

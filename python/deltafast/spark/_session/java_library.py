"""The jar with deltafast's Java classes, which is added to the driver and, where they are needed there, to executors.

The package of the classes contains a hash of the release and of the sources (see `dev/build_jar.py`): releases of
deltafast that share a driver have classes of their own, and Python processes that share one find a class that another
has loaded. The jar is compiled against one release of Spark. Where another one lacks something that a class uses,
Janino, Spark's own compiler, compiles the class in the driver from the sources in the jar.
"""

from __future__ import annotations

import atexit
import functools
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from deltafast.exceptions import InvalidArgumentError, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "JavaSession",
    "UnavailableError",
    "add_service",
    "call_static",
    "construct",
    "first_line",
    "load",
    "on_executors",
    "package_of",
]

_JAR = Path(__file__).parents[1] / "jars" / "deltafast-spark.jar"
_LOADER = "org.apache.spark.util.MutableURLClassLoader"

#: The classes, by the Java virtual machine that loaded them and their name.
_LOADED: dict[tuple[Any, str], Any] = {}
#: The error, if any, of sending a jar or a class to the executors, by application and jar or class.
_SENT: dict[tuple[str, str], str | None] = {}


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
    """A class cannot be loaded, compiled or sent."""


class _Library(NamedTuple):
    #: A copy of the jar, which an upgrade of deltafast does not replace while Java reads it.
    jar: str
    package: str


def load(session: JavaSession, name: str) -> Any:
    """Load a class for every thread of the driver.

    Args:
        session: A session that is not of Connect.
        name: Its name, without its package.

    Returns:
        The `java.lang.Class`.

    Raises:
        UnavailableError: This Spark can neither load nor compile it.
        InvalidArgumentError: The jar is missing.
    """
    key = (session.spark._sc._gateway, name)
    if key in _LOADED:
        return _LOADED[key]
    library = _library()
    try:
        full = f"{library.package}.{name}"
        check = _load_from(session, f"{library.package}.LinkCheck", library.jar)
        failure = str(call_static(session, check, "firstError", full, check.getClassLoader()))
        if failure:
            _warn_of(session, failure)
            kind = _compiled(session, library, name)
        else:
            kind = _loader(session).loadClass(full)
    except Exception as error:
        message = first_line(error)
        raise UnavailableError(message) from error
    _LOADED[key] = kind
    return kind


def package_of(session: JavaSession, name: str) -> str:
    """Return the package of a class: one for all classes but those that Janino compiled."""
    key = (session.spark._sc._gateway, f"the package of {name}")
    if key not in _LOADED:
        _LOADED[key] = str(load(session, name).getPackageName())
    return _LOADED[key]


def add_service(session: JavaSession, kind: Any, interface: str) -> None:
    """Register a class with Java's service loader.

    The jar itself registers none: in a session with delta-spark's jar there would be two formats of the same name.
    """
    key = (session.spark._sc._gateway, f"{kind.getName()} as {interface}")
    if key not in _LOADED:
        _add(session, _written(f"{kind.getName()}-service", {f"META-INF/services/{interface}": f"{kind.getName()}\n"}))
        _LOADED[key] = kind


def on_executors(session: JavaSession, kind: Any) -> None:
    """Make a class available to the executors.

    Args:
        session: A session.
        kind: The class, from `load`.

    Raises:
        UnavailableError: The executors cannot load it.
    """
    context = session.spark._sc
    if re.fullmatch(r"local(\[.*\])?", context.master):
        # The executor is a thread of the driver.
        return
    # Other contexts of the same Java have other executors.
    application, name = str(context._jsc.sc().applicationId()), str(kind.getName())
    asked = (application, name)
    if asked not in _SENT:
        try:
            jar = str(kind.getProtectionDomain().getCodeSource().getLocation().toString())
            if (application, jar) not in _SENT:
                context._jsc.addJar(jar)
                _SENT[application, jar] = None
            probe = kind.getClassLoader().loadClass(f"{kind.getPackageName()}.ExecutorProbe")
            function = construct(session, probe, name)
            numbers = session.jvm.java.util.ArrayList()
            numbers.add(1)
            context._jsc.parallelize(numbers, 1).map(function).collect()
            _SENT[asked] = None
        except Exception as error:  # noqa: BLE001 - after any error the next query need not try again
            _SENT[asked] = first_line(error)
    failure = _SENT[asked]
    if failure is not None:
        raise UnavailableError(failure)


def call_static(session: JavaSession, kind: Any, name: str, *arguments: Any) -> Any:
    """Call the one static method of a class that has this name, with one to three arguments."""
    return _invoker(session).callStatic(kind, name, *arguments)


def construct(session: JavaSession, kind: Any, *arguments: Any) -> Any:
    """Call the only constructor of a class, with none, one, four or eight arguments."""
    return _invoker(session).construct(kind, *arguments)


def _invoker(session: JavaSession) -> Any:
    """Return the object through which Java's reflection takes one call instead of one for each argument."""
    key = (session.spark._sc._gateway, "the invoker")
    if key not in _LOADED:
        library = _library()
        kind = _load_from(session, f"{library.package}.Invoker", library.jar)
        none = session.spark._sc._gateway.new_array(session.jvm.java.lang.Object, 0)
        _LOADED[key] = kind.getConstructors()[0].newInstance(none)
    return _LOADED[key]


def first_line(error: BaseException) -> str:
    """Return the first line of an error, of the Java error if it is one."""
    cause: Any = getattr(error, "java_exception", None)
    text = str(cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__


@functools.cache
def _library() -> _Library:
    """Return the jar of this release."""
    if not _JAR.exists():
        message = f"{_JAR} is missing: in a source checkout, `make build-jar` builds it"
        raise InvalidArgumentError(message)
    with zipfile.ZipFile(_JAR) as archive:
        manifest = archive.read("META-INF/MANIFEST.MF").decode()
    package = re.findall(r"^Deltafast-Package: (\S+)", manifest, re.MULTILINE)[0]
    copy = _folder() / f"{package.replace('.', '-')}.jar"
    shutil.copyfile(_JAR, copy)
    return _Library(str(copy), package)


def _folder() -> Path:
    """Return a new folder for jars, which exists until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="deltafast-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _loader(session: JavaSession) -> Any:
    return session.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()


def _load_from(session: JavaSession, name: str, jar: str) -> Any:
    """Load a class, from a jar if no jar of the driver contains it."""
    found = _found(session, name)
    if found is None:
        _add(session, jar)
        found = _loader(session).loadClass(name)
    return found


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


def _warn_of(session: JavaSession, failure: str) -> None:
    key = (session.spark._sc._gateway, "link error")
    if key not in _LOADED:
        _LOADED[key] = None
        warn(f"this Spark differs from the one that deltafast was built for ({failure}); Janino compiles its classes")


def _compiled(session: JavaSession, library: _Library, name: str) -> Any:
    """Compile a class, and those that it uses, in the driver."""
    # A package of its own for each class: Janino cannot derive classes from those that it has compiled before.
    package = f"{library.package}_janino_{name.lower()}"
    found = _found(session, f"{package}.{name}")
    if found is not None:
        return found
    jvm = session.jvm
    sources = jvm.java.util.HashMap()
    for path, text in _sources(library, package).items():
        sources.put(path, bytearray(text.encode()))
    resources = jvm.org.codehaus.commons.compiler.util.resource
    finder, classes = resources.MapResourceFinder(sources), jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(_loader(session)))
    compiler.setSourceFinder(finder)
    compiler.setClassFileFinder(resources.ResourceFinder.EMPTY_RESOURCE_FINDER)
    compiler.setClassFileCreator(resources.MapResourceCreator(classes))
    # Executors are probed for each class.
    chosen = session.spark._sc._gateway.new_array(resources.Resource, 2)
    for place, each in enumerate((name, "ExecutorProbe")):
        chosen[place] = finder.findResource(f"{package.replace('.', '/')}/{each}.java")
    compiler.compile(chosen)
    jar = _written(f"{package}.{name}", {str(path): bytes(code) for path, code in dict(classes).items()})
    return _load_from(session, f"{package}.{name}", jar)


def _sources(library: _Library, package: str) -> dict[str, str]:
    """Return the sources in the jar, moved to another package."""
    old, new = library.package.replace(".", "/"), package.replace(".", "/")
    with zipfile.ZipFile(library.jar) as archive:
        return {
            path.replace(old, new): archive.read(path).decode().replace(library.package, package, 1)
            for path in archive.namelist()
            if path.endswith(".java")
        }


def _written(name: str, files: Mapping[str, str | bytes]) -> str:
    """Write a jar, which exists until the process ends."""
    path = _folder() / f"{name.replace('.', '-')}.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return str(path)

"""Enables deltafast in Spark sessions that name Delta's classes: patches PySpark when a program imports it.

The distribution of `compat/delta-spark/` installs a copy of this file as a module, with a `.pth` file that calls
`install` whenever Python starts. Until PySpark is imported it costs the definition of two classes; deltafast is
imported only for sessions that name Delta.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

EXTENSIONS, EXTENSION = "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
CATALOGS, CATALOG = "spark.sql.catalog.", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
#: Delta's names, and those of the classes in deltafast's jar.
NAMED_EXTENSIONS = (EXTENSION, "io.deltafast.spark.DeltafastExtension")
NAMED_CATALOGS = (CATALOG, "io.deltafast.spark.DeltafastCatalog")
PACKAGES, PACKAGE = "spark.jars.packages", "io.delta:delta-"
#: The mark of sessions to enable, which `configure_spark_with_delta_pip` sets.
ENABLED = "spark.deltafast.enabled"


def install() -> None:
    """Patch PySpark's modules: now, or once they are imported. Does nothing if it was called before."""
    if any(type(finder).__name__ == SparkFinder.__name__ for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, SparkFinder())
    for name, patch in _PATCHES.items():
        if name in sys.modules:
            patch(sys.modules[name])


class SparkFinder:
    """Finds the modules of `_PATCHES` as the other finders do, and patches them once they are executed."""

    def __init__(self) -> None:
        self._busy = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a module to patch, None for others."""
        patch = _PATCHES.get(fullname)
        if self._busy or patch is None:
            return None
        from importlib.util import find_spec

        self._busy = True
        try:
            spec = find_spec(fullname)
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            patching: Any = PatchingLoader(spec.loader, patch)
            spec.loader = patching
        return spec


class PatchingLoader:
    """Loads a module as another loader does, and patches it."""

    def __init__(self, loader: Loader, patch: Callable[[Any], None]) -> None:
        self._loader, self._patch = loader, patch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the other loader creates."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then patch it."""
        self._loader.exec_module(module)
        self._patch(module)


def _patch_context(module: Any) -> None:
    """Patch the start of the driver: its settings name no class and no package of Delta's, but the mark.

    The setting that lists packages is restored once they were downloaded, for programs that read it.
    """
    before = module.SparkContext._ensure_initialized.__func__  # no public method has the settings

    def _ensure_initialized(cls: Any, instance: Any = None, gateway: Any = None, conf: Any = None) -> None:
        arguments = os.environ.get("PYSPARK_SUBMIT_ARGS")
        if arguments is not None and PACKAGE in arguments:
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--conf {ENABLED}=true {_without_packages(arguments)}"
        packages = None if conf is None else conf.get(PACKAGES, None)
        if conf is not None and packages and PACKAGE in packages:
            conf.set(PACKAGES, _without(packages, _is_package))
            conf.set(ENABLED, "true")
        before(cls, instance, gateway, conf)
        if conf is not None and not _has_deltas_jar(cls._jvm):
            # Those of `spark-submit` and of `spark-defaults.conf`, which Java reads, and those of the program.
            submitted = cls._jvm.SparkConf()
            _strip(conf, {entry._1(): entry._2() for entry in submitted.getAll()})
            _strip(conf, dict(conf.getAll()))
        if conf is not None and packages:
            conf.set(PACKAGES, packages)

    module.SparkContext._ensure_initialized = classmethod(_ensure_initialized)


def _has_deltas_jar(jvm: Any) -> bool:
    """Return whether Delta's own jar is in the driver, where its classes implement the format."""
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(EXTENSION)
    except Exception as error:
        if type(error).__name__ != "Py4JJavaError":
            raise
        return False
    return True


def _strip(conf: Any, given: Mapping[str, str]) -> None:
    """Set the settings that differ without Delta."""
    others = without_delta(given)
    if others == given:
        return
    for key, value in given.items():
        if key.startswith(CATALOGS) and key not in others:
            # A setting cannot be removed; this is Spark's own catalog.
            conf.set(key, "builtin" if key == f"{CATALOGS}spark_catalog" else value)
        elif others.get(key) != value:
            conf.set(key, others.get(key, ""))
    conf.set(ENABLED, "true")


def _without_packages(arguments: str) -> str:
    """Return the arguments of `spark-submit` without Delta's packages."""
    import shlex

    kept: list[str] = []
    words = iter(shlex.split(arguments))
    for word in words:
        option, equals, value = word.partition("=")
        if option not in ("--packages", "--conf", "-c"):
            kept.append(word)
            continue
        value = value if equals else next(words, "")
        setting = "" if option == "--packages" else f"{PACKAGES}="
        if value.startswith(setting) and PACKAGE in value:
            packages = _without(value.removeprefix(setting), _is_package)
            value = setting + packages if packages else ""
        if value:
            kept += [option, value]
    return shlex.join(kept)


def without_delta(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without those that name Delta's classes and packages, and without the mark."""
    others: dict[str, Any] = {}
    for key, value in options.items():
        kept = value
        if key == EXTENSIONS:
            kept = _without(value, lambda name: name in NAMED_EXTENSIONS)
        elif key == PACKAGES:
            kept = _without(value, _is_package)
        elif key == ENABLED or (key.startswith(CATALOGS) and str(value).strip() in NAMED_CATALOGS):
            continue
        if kept or not value:
            others[key] = kept
    return others


def _is_package(name: str) -> bool:
    return name.startswith(PACKAGE)


def _without(value: Any, is_delta: Callable[[str], bool]) -> str:
    """Return a list separated by commas without some of its names."""
    return ",".join(name for name in str(value).split(",") if not is_delta(name.strip()))


def _patch_session(module: Any) -> None:
    """Patch the constructor of sessions and `getOrCreate` of their builder, classic or Connect."""
    session, builder = module.SparkSession, module.SparkSession.Builder
    initialize, get_or_create = session.__init__, builder.getOrCreate

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        initialize(self, *args, **kwargs)
        if self.__class__.__module__ == "pyspark.sql.session" and _names_delta(self):
            _enable(self)

    def getOrCreate(self: Any) -> Any:  # noqa: N802 - PySpark's name
        options = self._options
        others = without_delta(options)
        is_named = others != options
        if is_named and module.__name__ == "pyspark.sql.session":
            kept = (PACKAGES, "spark.sql.") if _runs_with_deltas_jar(options) else (PACKAGES,)
            others |= {key: value for key, value in options.items() if key.startswith(kept)}
        self._options = others
        try:
            spark = get_or_create(self)
        finally:
            self._options = options
        if is_named or _names_delta(spark):
            _enable(spark)
        return spark

    __init__.__doc__, getOrCreate.__doc__ = initialize.__doc__, get_or_create.__doc__
    session.__init__, builder.getOrCreate = __init__, getOrCreate


def _runs_with_deltas_jar(options: Mapping[str, Any]) -> bool:
    """Return whether Delta's own jar is in the driver of a classic session, which is started if there is none.

    Args:
        options: The options of the session's builder.
    """
    if "SPARK_REMOTE" in os.environ or "spark.remote" in options or options.get("spark.api.mode") == "connect":
        return False
    from pyspark import SparkConf, SparkContext

    context: Any = SparkContext
    if context._jvm is None:
        conf = SparkConf()
        for key, value in options.items():
            conf.set(key, value)
        context._ensure_initialized(conf=conf)
    return _has_deltas_jar(context._jvm)


def _names_delta(spark: Any) -> bool:
    """Return whether the settings with which the driver or the server was started name Delta."""
    return (
        spark.conf.get(ENABLED, "false") == "true"
        or spark.conf.get(f"{CATALOGS}spark_catalog", "") in NAMED_CATALOGS
        or any(name in spark.conf.get(EXTENSIONS, "") for name in NAMED_EXTENSIONS)
    )


def _enable(spark: Any) -> None:
    from deltafast.spark._enable.enable import enable_once

    enable_once(spark)


_PATCHES = {
    "pyspark.core.context": _patch_context,
    "pyspark.sql.session": _patch_session,
    "pyspark.sql.connect.session": _patch_session,
}

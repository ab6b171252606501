"""Session settings of delta-spark that deltafast does not have: a warning names each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast.exceptions import warn

if TYPE_CHECKING:
    from deltafast.spark._enable.dataframe_writer import Replace
    from deltafast.spark._session.session import Session

__all__ = ["put", "warn_of_settings"]

_CONF: Final = "spark.databricks.delta."
_LOG_STORE: Final = "spark.delta.logStore."
#: What deltafast does, and the values of the setting for which delta-spark does the same.
_IGNORED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "checkpoint.partSize": ("a checkpoint is one file", ()),
    "replaceWhere.dataColumns.enabled": ("replaceWhere may name any column", ("true",)),
    "replaceWhere.constraintCheck.enabled": ("rows that do not match replaceWhere are refused", ("true",)),
    "optimize.minFileSize": ("OPTIMIZE combines the files that are smaller than those it writes", ()),
    "convert.useMetadataLog": ("CONVERT TO DELTA lists the files of the folder", ("false",)),
    "convert.useCatalogPartitions": ("CONVERT TO DELTA lists the files of the folder", ("false",)),
    "convert.useCatalogSchema": ("CONVERT TO DELTA reads the schema from the files", ("false",)),
    "convert.metadataCheck.enabled": ("CONVERT TO DELTA does not compare the properties of the catalog", ("false",)),
}

#: The settings that were reported.
_reported: set[str] = set()


def warn_of_settings(session: Session) -> None:
    """Warn of the settings that a session has when deltafast is enabled."""
    for name in _IGNORED:
        value = session.conf(_CONF + name)
        if value is not None:
            _check(_CONF + name, value)
    for name, value in session.settings(_LOG_STORE).items():
        if "DynamoDB" in value and _LOG_STORE not in _reported:
            _reported.add(_LOG_STORE)
            warn(
                f"{_LOG_STORE}{name} has no effect with deltafast, which commits with conditional writes: jobs of "
                "delta-spark with this log store can replace its commits, so they must not write to the same tables"
            )


def put(replace: Replace, config: Any) -> None:
    """Patch the method that changes a setting of a session."""

    def make(before: Any) -> Any:
        def set_setting(conf: Any, key: str, value: Any) -> None:
            before(conf, key, value)
            _check(key, str(value))

        return set_setting

    replace(config, "set", make)


def _check(key: str, value: str) -> None:
    found = _IGNORED.get(key.removeprefix(_CONF)) if key.startswith(_CONF) else None
    if found is None or value.strip().lower() in found[1] or key in _reported:
        return
    _reported.add(key)
    warn(f"{key} has no effect with deltafast: {found[0]}")

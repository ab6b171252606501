"""Statements of a session: Spark's parser gives each to Python, which reads and runs those of Delta's SQL.

Whatever passes a statement to the session, it takes this way: `spark.sql`, a cell of a notebook, Java and Scala code of
the driver, a server of Spark's that runs in it.
"""

from __future__ import annotations

import functools
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltafast._expr.lexer import unescape
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import FROM_CATALOG, name_in_catalog, place_of_name
from deltafast.spark._commands.parameters import bound
from deltafast.spark._commands.statements import prepare, sql
from deltafast.spark._conditions import Operation
from deltafast.spark._session.session import Session, quiet
from deltafast.spark.exceptions import during

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import pyarrow as pa

__all__ = ["CatalogProvider", "ParsedStatements", "is_of_the_catalog", "managing", "run_statement"]

#: Statements that only affect or show the catalog's entry: an existing table, its name, its location.
_OF_THE_CATALOG: Final = re.compile(
    rf"""\s*(?: {re.escape(FROM_CATALOG.strip())}
        | ALTER \s+ TABLE \s+ (?!delta\s*\.\s*`) (?:[\w.]|`[^`]+`)+ \s+ RENAME \s+ TO \s
        | CREATE \s+ TABLE \s+ (?:IF\s+NOT\s+EXISTS\s+)? \S+ \s+ USING \s+ delta \s+
          LOCATION \s+ '[^']*' \s* ;? \s* $ )""",
    re.IGNORECASE | re.VERBOSE,
)
_CREATES: Final = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?((?:[\w.]|`[^`]+`)+)", re.IGNORECASE
)
_IMMEDIATE: Final = re.compile(r"""(?is)\s*EXECUTE\s+IMMEDIATE\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*;?\s*""")
_SAYS_WHERE: Final = re.compile(r"\bLOCATION\s+['\"]", re.IGNORECASE)


class CatalogProvider(Protocol):
    """The format `delta` of the tables in a catalog."""

    def forget(self, spark: Any) -> None:
        """Make the next query read the newest versions of tables of the catalog."""
        ...

    def manage(self, spark: Any, name: str) -> None:
        """Make a table at the catalog's default location managed."""
        ...


def is_of_the_catalog(text: str) -> bool:
    """Return whether a statement only affects or shows the catalog's entry of a table."""
    return _OF_THE_CATALOG.match(text) is not None


def run_statement(provider: CatalogProvider, spark: Any, text: str, args: Any = None) -> Any:
    """Run a statement as `deltafast.spark.sql`; a table that it creates without a location is a managed one."""
    made = _CREATES.match(text)
    with managing(provider, spark, None if made is None or _SAYS_WHERE.search(text) else made[1]):
        return sql(spark, text, args)


@contextmanager
def managing(provider: CatalogProvider, spark: Any, name: str | None) -> Generator[None]:
    """Make a table a managed one if it is created within.

    Args:
        provider: The format.
        spark: The session.
        name: The name of a table without a location; None for none.
    """
    if name is not None and name_in_catalog(Session(spark), name) is not None:
        # Unity Catalog makes it a managed one itself.
        name = None
    is_new = name is not None and path_in(name) is None and not spark.catalog.tableExists(name)
    yield
    if is_new and name is not None and place_of_name(Session(spark), name) is not None:
        provider.manage(spark, name)


def _is_created_in_unity_catalog(spark: Any, text: str) -> bool:
    """Return whether a statement creates a table of Unity Catalog."""
    created = _CREATES.match(text)
    return created is not None and name_in_catalog(Session(spark), created[1]) is not None


class ParsedStatements:
    """What Java calls for each statement.

    Args:
        provider: The format.
        session_of: Returns the session of Python of one of Java.
        fail: Keeps an exception that Java raises again.
    """

    def __init__(
        self,
        provider: CatalogProvider,
        session_of: Callable[[Any], Any],
        fail: Callable[[BaseException, Any], None],
    ) -> None:
        self._provider, self._session_of, self._fail = provider, session_of, fail

    def read(self, session: Any, text: Any, parameters: Any, reading: Any, failure: Any) -> None:
        """Say in `reading` what a statement is; on an error set `failure`."""
        try:
            text = _executed(text)
            spark = self._session_of(session)
            if is_of_the_catalog(text) and not _is_created_in_unity_catalog(spark, text):
                return
            self._provider.forget(spark)
            whole = bound(text, json.loads(parameters), spell=str) if parameters else text
            with during(Operation.RELATION):
                found = prepare(Session(spark), whole)
                if found.sparks is not None:
                    if found.sparks != whole:
                        reading.setText(found.sparks)
                elif found.columns is None:
                    reading.setQuery(found.run()._jdf)
                else:
                    reading.setCommand(whole, _json_of(found.columns))
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            self._fail(error, failure)

    def run(self, session: Any, text: Any, failure: Any) -> Any:
        """Run a statement that changes tables; on an error set `failure`."""
        try:
            with during(Operation.RELATION):
                return run_statement(self._provider, self._session_of(session), text)._jdf
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            self._fail(error, failure)
            return None


def _executed(text: str) -> str:
    """Return the statement in EXECUTE IMMEDIATE, which PySpark 4.0 parses by itself; any other statement unchanged."""
    import pyspark

    match = _IMMEDIATE.fullmatch(text) if pyspark.__version__.startswith("4.0.") else None
    return text if match is None else unescape(match[1][1:-1])


@functools.cache
def _json_of(columns: pa.Schema) -> str:
    """Return the columns of a result in Spark's JSON."""
    with quiet():
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(columns).json()

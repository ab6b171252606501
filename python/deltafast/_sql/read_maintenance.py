"""Parser of OPTIMIZE, REORG, VACUUM, RESTORE, DESCRIBE, SHOW, GENERATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr import token_kind
from deltafast._sql.read_changes import read_partition
from deltafast._sql.tree import (
    SYMLINK_MANIFEST,
    Describe,
    DescribeKind,
    Generate,
    Optimize,
    Reorg,
    Restore,
    Show,
    ShowKind,
    Vacuum,
)
from deltafast.exceptions import ErrorCode

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast._sql.tree import Path, Source

__all__ = [
    "read_describe",
    "read_generate",
    "read_optimize",
    "read_reorg",
    "read_restore",
    "read_show",
    "read_vacuum",
]


def read_optimize(reader: Reader) -> Optimize:
    """`OPTIMIZE t [FULL] [WHERE ..] [ZORDER BY (..)]`."""
    reader.expect("OPTIMIZE")
    target = reader.table_or_place()
    full = reader.accept("FULL")
    where = reader.where()
    full = reader.accept("FULL") or full
    columns: tuple[Path, ...] = reader.paths() if reader.accept("ZORDER", "BY") else ()
    return Optimize(target, full, where, columns)


def read_reorg(reader: Reader) -> Reorg:
    """`REORG TABLE t [WHERE ..] APPLY (PURGE)`, `REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))`.

    The second is of the whole table.
    """
    reader.expect("REORG", "TABLE")
    target = reader.table_or_place()
    where = reader.where()
    reader.expect("APPLY")
    reader.expect_op("(")
    upgrade = None
    if not reader.accept("PURGE"):
        if where is not None:
            reader.fail("expected PURGE: UPGRADE UNIFORM is of the whole table, without WHERE")
        reader.expect("UPGRADE", "UNIFORM")
        reader.expect_op("(")
        reader.expect("ICEBERG_COMPAT_VERSION")
        reader.expect_op("=")
        upgrade = reader.whole_number("a version of Iceberg compatibility")
        reader.expect_op(")")
    reader.expect_op(")")
    return Reorg(target, where, upgrade)


def read_vacuum(reader: Reader) -> Vacuum:
    """`VACUUM t [LITE | FULL] [USING INVENTORY ..] [RETAIN n HOURS] [DRY RUN]`, in any order."""
    reader.expect("VACUUM")
    target = reader.table_or_place()
    lite, hours, dry_run = False, None, False
    inventory: Source | None = None
    seen: set[str] = set()
    while reader.token.kind is not token_kind.END:
        word, pos = reader.token.upper, reader.token.pos
        if reader.accept("LITE"):
            word, lite = "LITE or FULL", True
        elif reader.accept("FULL"):
            word = "LITE or FULL"
        elif reader.accept("USING", "INVENTORY"):
            if reader.accept_op("("):
                inventory = reader.query(nested=True)
                reader.expect_op(")")
            else:
                inventory = reader.source_table()
        elif reader.accept("RETAIN"):
            hours = _hours(reader)
            if not reader.accept_any("HOURS", "HOUR"):
                reader.fail("expected HOURS")
        elif reader.accept("DRY", "RUN"):
            dry_run = True
        else:
            reader.fail("expected LITE, FULL, USING INVENTORY, RETAIN n HOURS or DRY RUN")
        if word in seen:
            raise reader.error(f"{word} is given twice", pos, "give it once")
        seen.add(word)
    return Vacuum(target, lite, hours, dry_run, inventory)


def _hours(reader: Reader) -> float:
    if reader.token.kind is not token_kind.NUMBER:
        reader.fail("expected a number of hours")
    return float(reader.advance().text)


def read_restore(reader: Reader) -> Restore:
    """`RESTORE [TABLE] t [TO] VERSION | TIMESTAMP AS OF ..`."""
    reader.expect("RESTORE")
    reader.accept("TABLE")
    target = reader.table_or_place()
    reader.accept("TO")
    at = reader.travel()
    if at is None:
        reader.fail("expected TO VERSION AS OF or TO TIMESTAMP AS OF")
    return Restore(target, at)


def read_describe(reader: Reader) -> Describe:
    """`DESCRIBE DETAIL t`, `DESCRIBE HISTORY t [LIMIT n]`, `DESCRIBE [TABLE] [EXTENDED | FORMATTED] t [column]`."""
    reader.advance()
    kind = DescribeKind.TABLE
    if reader.peek("DETAIL") and reader.ahead().kind is not token_kind.END:
        reader.advance()
        kind = DescribeKind.DETAIL
    elif reader.peek("HISTORY") and reader.ahead().kind is not token_kind.END:
        reader.advance()
        kind = DescribeKind.HISTORY
    else:
        reader.accept("TABLE")
        if reader.ahead().kind is not token_kind.END and reader.accept_any("EXTENDED", "FORMATTED"):
            kind = DescribeKind.EXTENDED
    target = reader.table_or_place()
    limit = reader.whole_number() if kind is DescribeKind.HISTORY and reader.accept("LIMIT") else None
    if kind in (DescribeKind.TABLE, DescribeKind.EXTENDED) and not reader.at_end:
        return Describe(target, DescribeKind.COLUMN, column=reader.path())
    return Describe(target, kind, limit)


def read_show(reader: Reader) -> Show:
    """`SHOW TBLPROPERTIES t [('key')]`, `COLUMNS IN t`, `PARTITIONS t [PARTITION (..)]`, `CREATE TABLE t`."""
    reader.expect("SHOW")
    if reader.accept("TBLPROPERTIES"):
        target, key = reader.table(), None
        if reader.accept_op("("):
            key = reader.property_key()
            reader.expect_op(")")
        return Show(target, ShowKind.PROPERTIES, key)
    if reader.accept("COLUMNS"):
        if not reader.accept_any("IN", "FROM"):
            reader.fail("expected IN")
        return Show(reader.table(), ShowKind.COLUMNS)
    if reader.accept("PARTITIONS"):
        target = reader.table()
        return Show(target, ShowKind.PARTITIONS, partition=read_partition(reader) if reader.accept("PARTITION") else ())
    if reader.accept("CREATE", "TABLE"):
        return Show(reader.table(), ShowKind.CREATE_TABLE)
    hint = "there are SHOW TBLPROPERTIES, SHOW COLUMNS, SHOW PARTITIONS and SHOW CREATE TABLE"
    reader.absent(f"SHOW {reader.token.text[:40]}", hint)


def read_generate(reader: Reader) -> Generate:
    """`GENERATE symlink_format_manifest FOR TABLE t`."""
    reader.expect("GENERATE")
    pos = reader.token.pos
    name = reader.name_part(SYMLINK_MANIFEST)
    if name.lower() != SYMLINK_MANIFEST:
        hint, code = f"there is {SYMLINK_MANIFEST}", ErrorCode.UNKNOWN_MANIFEST
        raise reader.error(f"{name!r} cannot be generated", pos, hint, code=code, parameters={"mode": name})
    reader.expect("FOR", "TABLE")
    return Generate(reader.table_or_place())

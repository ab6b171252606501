"""Explanation of a scan: the files and row groups that a predicate excludes, by rule, and what would exclude more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from deltafast._display import pairs_html, size_text, table_html
from deltafast._expr.render import to_spark_sql
from deltafast._expr.tree import Bound, Call, Cast, Col, In, Node, columns_of, walk
from deltafast._util.options import names
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltafast import _core_types
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate

__all__ = ["ConditionPruning", "RowGroupPruning", "ScanExplanation", "explain_scan"]

#: Functions of which the bounds of an operand decide the outcome.
_COMPARISONS = frozenset({"=", "<=>", "<", "<=", ">", ">=", "startswith"})
#: Clustering is recommended where an equality lookup reads at least so many files, and this share of them.
_FILES, _SHARE = 4, 0.1


@dataclass(frozen=True)
class RowGroupPruning:
    """Row groups of the files that remain, and what excludes them."""

    #: Number of row groups.
    row_groups: int
    #: Number of row groups of which deletion vectors delete all rows.
    excluded_by_deletion_vector: int
    #: Number of row groups that their statistics exclude.
    excluded_by_statistics: int
    #: Number of further row groups that their bloom filters exclude.
    excluded_by_bloom_filter: int
    #: Number of further row groups of which the page index excludes all pages.
    excluded_by_page_index: int
    #: Number of row groups that are read, or some of their pages.
    row_groups_read: int
    #: Number of stored rows.
    rows: int
    #: Number of rows in the pages that are read.
    rows_read: int
    #: Compressed bytes of the columns that the scan needs.
    bytes: int
    #: Bytes of these in the pages that are read.
    bytes_read: int


@dataclass(frozen=True)
class ConditionPruning:
    """One condition of a predicate's conjunction, alone."""

    #: The condition as Spark SQL.
    condition: str
    #: The columns that it reads.
    columns: list[str]
    #: Number of files that partition values exclude.
    excluded_by_partition: int
    #: Number of further files that statistics exclude.
    excluded_by_statistics: int


@dataclass(frozen=True)
class ScanExplanation:
    """The result of `DeltaTable.explain`: `print` it, or show it in a notebook.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> explanation = DeltaTable("cities").explain("id > 3")
        >>> explanation.version, explanation.pruning
        (0, 1.0)
    """

    #: URL of the table.
    table: str
    #: Version of the table.
    version: int
    #: The predicate as Spark SQL; None for all rows.
    predicate: str | None
    #: Number of live files.
    files_total: int
    #: Number of files that partition values exclude.
    excluded_by_partition: int
    #: Number of further files that statistics exclude.
    excluded_by_statistics: int
    #: Number of files that remain.
    files: int
    #: Bytes of all live files.
    bytes_total: int
    #: Bytes of the files that remain.
    bytes: int
    #: Row groups of the files that remain; None if their footers were not read.
    row_groups: RowGroupPruning | None
    #: What each condition excludes on its own.
    conditions: list[ConditionPruning]
    #: For each column of the predicate that has bounds: the number of files that an equality lookup reads on average.
    files_per_lookup: dict[str, float]
    #: What would exclude more.
    advice: list[str]

    @property
    def pruning(self) -> float:
        """The share of the table's bytes, from 0 to 1, that the predicate excludes; columns do not count."""
        if not self.bytes_total:
            return 0.0
        left = self.bytes / self.bytes_total
        if self.row_groups is not None and self.row_groups.bytes:
            left *= self.row_groups.bytes_read / self.row_groups.bytes
        return 1.0 - left

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON types."""
        return {**asdict(self), "pruning": self.pruning}

    def __str__(self) -> str:
        """Return it as lines of text."""
        facts = [f"{name:<11} {value}" for name, value in self._facts()]
        rows = [[printable(item.condition), *self._excluded(item)] for item in self.conditions]
        wide = max((len(row[0]) for row in rows), default=0)
        conditions = [f"  {condition:<{wide}}  {files}" for condition, files in rows]
        lines = [f"Scan of version {self.version} of {self.table}", *facts]
        lines += ["conditions, each on its own", *conditions] if conditions else []
        return "\n".join(map(printable, [*lines, *(f"advice: {text}" for text in self.advice)]))

    def _repr_html_(self) -> str:
        rows = [(item.condition, *self._excluded(item)) for item in self.conditions]
        parts = [pairs_html(f"Scan of version {self.version} of {self.table}", dict(self._facts()))]
        if rows:
            parts.append(table_html("Conditions, each on its own", ("condition", "excludes"), rows))
        if self.advice:
            parts.append(table_html("Advice", (), [(text,) for text in self.advice]))
        return "".join(parts)

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "predicate", self.predicate or "(all rows)"
        rules = {"partition values": self.excluded_by_partition, "statistics": self.excluded_by_statistics}
        yield "files", f"{self.files:,} of {self.files_total:,}{_rules(rules)}"
        yield "bytes", f"{size_text(self.bytes)} of {size_text(self.bytes_total)} in these files"
        groups = self.row_groups
        if groups is not None:
            rules = {
                "deletion vectors": groups.excluded_by_deletion_vector,
                "statistics": groups.excluded_by_statistics,
                "bloom filters": groups.excluded_by_bloom_filter,
                "the page index": groups.excluded_by_page_index,
            }
            yield "row groups", f"{groups.row_groups_read:,} of {groups.row_groups:,}{_rules(rules)}"
            yield "rows", f"{groups.rows_read:,} of {groups.rows:,} in the pages that are read"
            yield "column data", f"{size_text(groups.bytes_read)} of {size_text(groups.bytes)} of the scan's columns"
        yield "pruning", f"{100 * self.pruning:.1f} % of the table's bytes"

    def _excluded(self, item: ConditionPruning) -> tuple[str]:
        excluded = item.excluded_by_partition + item.excluded_by_statistics
        rules = {"partition values": item.excluded_by_partition, "statistics": item.excluded_by_statistics}
        by = " and ".join(name for name, count in rules.items() if count)
        return (f"{excluded:,} of {self.files_total:,} files{f' by {by}' if by else ''}",)


def explain_scan(
    table: TableHandle, predicate: Predicate | None, columns: Sequence[str] | None, *, row_groups: bool
) -> ScanExplanation:
    """Return the explanation of a scan; see `DeltaTable.explain`."""
    tree = table.bind(predicate)
    snapshot = table.snapshot
    found = snapshot.explain(tree, names(columns), row_groups)
    plan = found["plan"]
    bound = None if tree is None else Bound.from_tree(tree)
    conditions = [] if bound is None else [_condition(table, part) for part in _conjuncts(bound)]
    lookups = {".".join(item["column"]): item["overlapping_files"] for item in found["overlaps"]}
    groups = found["row_groups"]
    return ScanExplanation(
        table=table.table_uri,
        version=table.version(),
        predicate=None if bound is None else to_spark_sql(bound),
        files_total=plan["files_total"],
        excluded_by_partition=plan["files_total"] - plan["files_after_partition"],
        excluded_by_statistics=plan["files_after_partition"] - plan["files"],
        files=plan["files"],
        bytes_total=found["bytes_total"],
        bytes=found["bytes"],
        row_groups=None if groups is None else RowGroupPruning(**groups),
        conditions=conditions,
        files_per_lookup=lookups,
        advice=[] if bound is None else list(_advice(table, bound, found["overlaps"], plan["files_total"])),
    )


def _conjuncts(bound: Bound) -> list[Bound]:
    """Return the conditions that all must be true."""
    match bound.expr:
        case Call(f="and", args=args):
            return [bound._replace(expr=arg) for arg in args]
        case _:
            return [bound]


def _condition(table: TableHandle, bound: Bound) -> ConditionPruning:
    plan = table.snapshot.plan(bound.to_tree())
    return ConditionPruning(
        condition=to_spark_sql(bound),
        columns=[".".join(path) for path in columns_of(bound)],
        excluded_by_partition=plan["files_total"] - plan["files_after_partition"],
        excluded_by_statistics=plan["files_after_partition"] - plan["files"],
    )


def _advice(
    table: TableHandle, bound: Bound, overlaps: Sequence[_core_types.ColumnOverlap], files: int
) -> Iterator[str]:
    """Return what would exclude more files: an order of the rows, or statistics."""
    partition = table.metadata().partition_columns
    known = {tuple(item["column"]): item for item in overlaps}
    for path in _compared_columns(bound):
        name, item = ".".join(path), known.get(path)
        if path[0] in partition:
            continue
        lacking = files - (0 if item is None else item["files_with_bounds"])
        if lacking:
            yield (
                f"{name} has no bounds in {lacking:,} of {files:,} files; add it to delta.dataSkippingStatsColumns "
                "and rewrite them"
            )
        if item is None:
            continue
        lookup, bounded = item["overlapping_files"], item["files_with_bounds"]
        if lookup >= _FILES and lookup >= _SHARE * bounded:
            how = "optimize.z_order" if partition else "clustering (alter.cluster_by, optimize.cluster)"
            yield (
                f"an equality lookup in {name} reads {lookup:,.0f} of {bounded:,} files on average; "
                f"{how} by it would make that about one"
            )


def _compared_columns(bound: Bound) -> list[tuple[str, ...]]:
    """Return the columns of which bounds decide a comparison."""
    operands: list[Node] = []
    for node in walk(bound.expr):
        match node:
            case Call(f=f, args=args) if f in _COMPARISONS:
                operands.extend(args)
            case In(arg=arg):
                operands.append(arg)
            case _:
                pass
    found = (operand.arg if isinstance(operand, Cast) else operand for operand in operands)
    return list(dict.fromkeys(operand.path for operand in found if isinstance(operand, Col)))


def _rules(excluded: dict[str, int]) -> str:
    parts = [f"{name} {count:,}" for name, count in excluded.items() if count]
    return f"; excluded by {', '.join(parts)}" if parts else ""

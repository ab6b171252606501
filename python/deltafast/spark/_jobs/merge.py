"""MERGE as Spark jobs.

One job joins the columns that conditions need of the source and of the files that can match, and decides which clause
takes a row; executors keep these pairs. The core marks rows as deleted or removes files. Another job reads the files
that have such rows, and writes updated, copied and new rows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._handle import handle_of
from deltafast._ops.merge import merge_metrics
from deltafast._ops.merge_clause import MergeAction
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._jobs.folders import Folders
from deltafast.spark._jobs.row_bitmaps import PLACE_OF, WORD_OF, marks_by_kind
from deltafast.spark._jobs.session_functions import SessionFunctions, conditions_of, core_plan, values_of
from deltafast.spark._jobs.sides import (
    BY_SOURCE,
    MATCHED,
    NOT_MATCHED,
    SOURCE,
    TARGET,
    Clause,
    clauses_of,
    condition_of,
    named,
)
from deltafast.spark._jobs.source import SOURCE_ROW, Source, check_source
from deltafast.spark._jobs.values import Constraints, with_field
from deltafast.spark._scan.physical_columns import Columns, plain_type, quoted, spark_type
from deltafast.spark._scan.row_positions import FILE, ROW, Rows
from deltafast.spark._session.session import Session, quiet
from deltafast.spark._write.change_files import KIND
from deltafast.spark._write.identity_columns import value_of
from deltafast.spark._write.physical_schema import cast_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._ops.merge import TableMerger
    from deltafast.spark._jobs.row_bitmaps import MarkedRows
    from deltafast.spark._scan.snapshot import Listing
    from deltafast.table import DeltaTable

__all__ = ["merge"]

#: The number of the clause that takes a row; 0 if no clause takes it.
ACTION = "__deltafast_action"

#: The joins with the rows that clauses take, by whether the other rows of the table stay.
_JOINS = {True: "left", False: "inner"}

#: A row's file and its position in it as one number, which Spark looks up several times faster than two: 2^28 files of
#: 2^36 rows each.
_POSITION = "__deltafast_position"
_POSITION_OF = f"shiftleft(cast({quoted(FILE)} as bigint), 36) | {quoted(ROW)}"

#: A file and the number of a word of its bitmap as one number, and that word.
_WORD, _BITS = "__deltafast_word", "__deltafast_bits"


def merge(spark: Any, table: DeltaTable, source: Any, plan: TableMerger) -> dict[str, Any]:
    """Merge rows of a data frame into a table.

    Args:
        spark: The session, classic or Connect.
        table: A handle, which is updated to the new version.
        source: The rows, a frame of the session.
        plan: The condition and the clauses, as `DeltaTable.merge` creates them; its own source is not read.

    Returns:
        The metrics of `TableMerger.execute`.

    Raises:
        InvalidArgumentError: There is no clause, a name or an expression is invalid, several rows of the source
            would change one row of the table, or the table is append-only.
        SchemaMismatchError: The source has columns that the table does not have.
        ConstraintViolatedError: A new row violates a constraint.
        DeltaProtocolError: The table needs something that only the core supports; the message names it.
        CommitFailedError: Another writer changed the same rows concurrently; nothing was committed.
        CommitUnknownError: The outcome of the commit cannot be determined.
    """
    plan.check()
    session = Session(spark)
    kept: list[Any] = []
    try:
        return _Merge(session, table, source, plan, kept).run()
    finally:
        for frame in kept:
            frame.unpersist()


class _Merge:
    """The state of a MERGE; frames that executors keep for it are added to `kept`."""

    def __init__(self, session: Session, table: DeltaTable, frame: Any, merger: TableMerger, kept: list[Any]) -> None:
        self._table, self._kept = table, kept
        #: The rows of the table that clauses take.
        self._marked: MarkedRows | None = None
        check_source(frame)
        with quiet():
            self._core = _core.TableMerge(handle_of(table).snapshot, frame.limit(0).toArrow())
        functions = SessionFunctions(session)
        context = session.expression_context._replace(functions=functions)
        bound = merger.bind(handle_of(table), self._core, context)
        self._plan = plan = bound.plan
        functions.check_deterministic(conditions_of(plan))
        self._matched = clauses_of(plan["matched"], MATCHED, None)
        self._by_source = clauses_of(plan["by_source"], BY_SOURCE, TARGET)
        self._inserts = clauses_of(plan["not_matched"], NOT_MATCHED, SOURCE)
        self._source = source = Source(session, frame)
        statistics, keys = source.statistics(plan)
        self._requirements = self._core.plan_job(core_plan(plan), statistics, keys)
        if self._requirements["writes_change_data"]:
            # The change data feed has the values of the rows only if they are the same twice.
            functions.check_deterministic(values_of(plan))
        #: Whether the pairs have all columns of the rows of the table, so that its files are read once: a small source
        #: changes few rows, and no other row is written.
        self._keeps_rows = (
            self._requirements["uses_deletion_vectors"]
            and bool(self._updates or self._requirements["writes_change_data"])
            and not self._by_source
            and source.is_broadcast(source.count)
        )
        self._session = session
        self._rows = Rows(session, table, self._requirements["row_tracking_columns"])
        partition = [field["name"] for field in self._rows.columns.partition]
        self._after = Columns(json.loads(bound.schema), partition, is_mapped=self._rows.columns.is_mapped)
        self._constraints = Constraints(bound.constraints, self._after)

    def run(self) -> dict[str, Any]:
        listing = self._rows.listing(None).only(self._requirements["files"])
        pairs = self._pairs(listing) if len(listing.files) else None
        act = None if pairs is None else pairs.where(f"{ACTION} <> 0")
        touched, emptied, act = self._found(pairs, act, listing)
        with Folders(self._rows, self._after, self._requirements) as folders:
            if self._requirements["writes_change_data"] and len(touched.files):
                folders.write_changes(self._changes(touched, act, pairs))
            written = self._written(touched, emptied, act)
            if self._inserts:
                new = self._inserted(pairs)
                written = new if written is None else written.unionByName(new)
            if written is not None:
                folders.write(self._spread(written))
            done = self._core.run_folders(*folders.hand_over())
        every = handle_of(self._table).snapshot.num_files()
        handle_of(self._table).move(done.snapshot)
        return merge_metrics(done.metrics, len(self._requirements["files"]), every)

    # --- finding rows

    def _pairs(self, listing: Listing) -> Any:
        """Return matched rows, and rows without a match that a clause takes; by their positions alone, or whole."""
        from pyspark.sql import functions

        target = self._of_target(listing)
        on = functions.expr(condition_of(self._plan))
        action = _decided(self._matched)
        if self._by_source:
            pairs = target.join(self._source.joined(), on, "left")
            is_matched = functions.col(SOURCE_ROW).isNotNull()
            action = functions.when(is_matched, action).otherwise(_decided(self._by_source))
        else:
            pairs = target.join(self._source.joined(), on)
        names = [FILE, ROW, SOURCE_ROW]
        if self._keeps_rows:
            names += [name for name in target.columns if name not in names]
        pairs = pairs.select(*(functions.col(quoted(name)) for name in names), action.alias(ACTION))
        pairs = pairs.where(f"{SOURCE_ROW} is not null or {ACTION} <> 0").persist()
        self._kept.append(pairs)
        return pairs

    def _of_target(self, listing: Listing) -> Any:
        names = [field["name"] for field in self._rows.columns.fields]
        return named(self._rows.frame(listing), TARGET, names, (FILE, ROW, *self._rows.row_tracking_columns))

    def _found(self, pairs: Any, act: Any, listing: Listing) -> tuple[Listing, list[str], Any]:
        """Report rows that clauses take to the core; return their files, paths of emptied files, the distinct rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        if act is None:
            nothing = pa.table({name: pa.array([], pa.int64()) for name in ("file", "word", "bits", "kind")})
            return listing, self._core.find_rows({}, [], nothing), None
        self._marked = marked = marks_by_kind(act, listing, ACTION, self._kinds())
        with quiet():
            read = pairs.select(FILE).distinct().toArrow().column(0)
        if marked.rows > marked.distinct:
            if not self._requirements["allows_multiple_matches"]:
                self._refuse_several(act, marked.paths)
            act = act.dropDuplicates([FILE, ROW])
        numbers = listing.files.column(FILE)
        seen: Any = listing.files.column("path").filter(compute.is_in(numbers, read.combine_chunks())).to_pylist()
        emptied = self._core.find_rows(marked.paths, seen, marked.by_kind)
        return listing.only(marked.paths.values()), emptied, act

    def _kinds(self) -> dict[int, list[int]]:
        """Return the numbers of the clauses by what happens to a row, in the core's categories."""
        kinds: dict[int, list[int]] = {}
        for first, clauses in ((1, self._matched), (3, self._by_source)):
            for clause in clauses:
                kinds.setdefault(first + (clause.action is MergeAction.DELETE), []).append(clause.number)
        return kinds

    def _refuse_several(self, act: Any, paths: dict[int, str]) -> None:
        row = act.groupBy(FILE, ROW).count().where("count > 1").limit(1).collect()[0]
        message = f"several rows of the source match row {row[1]} of `{paths[row[0]]}`, and a clause takes more than "
        message += (
            "one of them (duplicate relevant WHEN MATCHED rows): which one counts is not said; make the source's "
        )
        message += "keys unique, or the clauses' conditions narrower"
        raise InvalidArgumentError(
            message, code=ErrorCode.MULTIPLE_SOURCE_ROWS_MATCHED, parameters={"file": paths[row[0]], "row": row[1]}
        )

    # --- writing rows

    @property
    def _updates(self) -> list[Clause]:
        return [clause for clause in (*self._matched, *self._by_source) if clause.action is MergeAction.UPDATE]

    def _written(self, touched: Listing, emptied: list[str], act: Any) -> Any:
        """Return changed rows and, without deletion vectors, the others of their files; None if there are no rows."""
        if act is None or not len(touched.files):
            return None
        if self._requirements["uses_deletion_vectors"]:
            return self._edited(self._taken(touched, act, self._updates)) if self._updates else None
        left = touched.only(emptied, others=True)
        if not len(left.files):
            return None
        joined = self._joined(left, act, keeps_others=True)
        deleted = [
            str(clause.number) for clause in (*self._matched, *self._by_source) if clause.action is MergeAction.DELETE
        ]
        return self._edited(joined.where(f"{ACTION} not in ({', '.join(deleted)})") if deleted else joined)

    def _taken(self, listing: Listing, act: Any, clauses: Sequence[Clause]) -> Any:
        """Return the rows of the table that clauses take, with the source rows that change them."""
        from pyspark.sql import functions

        act = act.where(functions.col(ACTION).isin([clause.number for clause in clauses]))
        if self._keeps_rows:
            return act.join(self._source.joined(), SOURCE_ROW)
        return self._joined(listing, act, keeps_others=False)

    def _joined(self, listing: Listing, act: Any, *, keeps_others: bool) -> Any:
        """Return rows of the table joined with the source rows that change them; `ACTION` is 0 for unchanged rows."""
        from pyspark.sql import functions

        # The small sides first, so that the rows of the table are joined, and where necessary shuffled, once.
        position = functions.expr(_POSITION_OF).alias(_POSITION)
        act = act.select(position, functions.col(SOURCE_ROW), functions.col(ACTION))
        act = act.join(self._source.joined(), SOURCE_ROW, "left")
        frame = self._of_target(listing)
        if self._marked is not None and self._source.is_broadcast(self._marked.distinct):
            act = functions.broadcast(act)
            frame = self._candidates(frame, self._marked, keeps_others=keeps_others)
        else:
            frame = frame.withColumn(_POSITION, position)
        frame = frame.drop(FILE, ROW).join(act, _POSITION, _JOINS[keeps_others])
        return frame.withColumn(ACTION, functions.coalesce(functions.col(ACTION), functions.lit(0)))

    def _candidates(self, frame: Any, marked: MarkedRows, *, keeps_others: bool) -> Any:
        """Return rows of the table with `_POSITION`, which is null for rows that no clause takes.

        Rows of a file that follow each other have the same word of its bitmap, so that Spark finds it in the CPU's
        cache; the entries of single rows are spread over the memory.
        """
        from pyspark.sql import functions

        word = functions.expr(f"shiftleft(cast({quoted(FILE)} as bigint), 30) | {WORD_OF}")
        words = self._session.frame(marked.every).select(
            functions.expr("shiftleft(cast(file as bigint), 30) | word").alias(_WORD),
            functions.col("bits").alias(_BITS),
        )
        frame = frame.withColumn(_WORD, word).join(functions.broadcast(words), _WORD, _JOINS[keeps_others])
        is_marked = functions.expr(f"shiftrightunsigned({_BITS}, {PLACE_OF}) & 1L") == 1
        if not keeps_others:
            frame = frame.where(is_marked)
        position = functions.when(is_marked, functions.expr(_POSITION_OF))
        return frame.withColumn(_POSITION, position).drop(_WORD, _BITS)

    def _edited(self, frame: Any) -> Any:
        """Return rows of the table with the values of their clauses."""
        from pyspark.sql import functions

        base = self._base()
        new = {clause.number: self._given(clause, base) for clause in self._updates}
        columns = [_by_clause(field["name"], new, base[field["name"]]) for field in self._after.fields]
        rows = frame.select(*columns, *self._rows.row_tracking_columns, ACTION)
        # A changed row loses its commit version and so gets that of the new commit.
        for name in self._rows.row_tracking_columns[1:]:
            kept = functions.when(functions.col(ACTION) == 0, functions.col(quoted(name)))
            rows = rows.withColumn(name, kept)
        return self._finished(rows, self._updates)

    def _inserted(self, pairs: Any) -> Any:
        """Return rows of the source without a match, as rows of the table."""
        from pyspark.sql import functions

        rows = self._source.frame
        if pairs is not None:
            known = pairs.where(f"{SOURCE_ROW} is not null").select(functions.col(SOURCE_ROW))
            rows = rows.join(known, SOURCE_ROW, "left_anti")
        rows = rows.withColumn(ACTION, _decided(self._inserts)).where(f"{ACTION} <> 0")
        nothing: dict[str, Any] = {}
        for field in self._after.fields:
            of = spark_type(plain_type(field["type"])) if field["type"] != "void" else None
            null = functions.lit(None)
            nothing[field["name"]] = null if of is None else null.cast(of)
        new: dict[int, dict[str, Any]] = {}
        for clause in self._inserts:
            given = self._given(clause, nothing)
            for field in self._after.fields:
                name = field["name"]
                if name not in given and name in self._constraints.defaults:
                    value = functions.expr(self._constraints.defaults[name]).cast(spark_type(plain_type(field["type"])))
                    given[name] = value
            for identity in self._requirements["identities"]:
                if identity["column"] not in given:
                    # The number of a source row does not change, so the change data feed gets the same value.
                    given[identity["column"]] = value_of(identity, SOURCE_ROW, self._source.tasks)
            new[clause.number] = given
        columns = [_by_clause(field["name"], new, nothing[field["name"]]) for field in self._after.fields]
        nulls = [functions.lit(None).cast("bigint").alias(name) for name in self._rows.row_tracking_columns]
        return self._finished(rows.select(*columns, *nulls, ACTION), self._inserts)

    def _base(self) -> dict[str, Any]:
        """Return the columns of existing rows, in the table's new schema."""
        from pyspark.sql import functions

        before = {field["name"]: plain_type(field["type"]) for field in self._rows.columns.fields}
        out: dict[str, Any] = {}
        for field in self._after.fields:
            name, of = field["name"], plain_type(field["type"])
            if name in before:
                column = functions.col(quoted(f"{TARGET}.{name}"))
                out[name] = cast_column(self._session, column, before[name], of, name, functions)
            else:
                out[name] = functions.lit(None).cast(spark_type(of))
        return out

    def _given(self, clause: Clause, base: dict[str, Any]) -> dict[str, Any]:
        """Return the values that a clause assigns, by column."""
        from pyspark.sql import functions

        out: dict[str, Any] = {}
        for path, sql, of in clause.values:
            field = next(field for field in self._after.fields if field["name"] == path[0])
            wanted: Any = plain_type(field["type"])
            for part in path[1:]:
                wanted = next(inner["type"] for inner in wanted["fields"] if inner["name"] == part)
            value = cast_column(self._session, functions.expr(sql), of, wanted, ".".join(path), functions)
            name, *rest = path
            out[name] = with_field(out.get(name, base[name]), plain_type(field["type"]), rest, value) if rest else value
        return out

    def _finished(self, rows: Any, clauses: Sequence[Clause]) -> Any:
        """Compute generated columns without an assigned value, and check the rows."""
        from pyspark.sql import functions

        given: set[str] = set()
        for name in self._constraints.generated:
            follows = [clause.number for clause in clauses if name not in clause.given]
            if len(follows) < len(clauses):
                given.add(name)
            if follows:
                is_computed, new = functions.col(ACTION).isin(follows), self._constraints.computed(name)
                rows = rows.withColumn(name, functions.when(is_computed, new).otherwise(functions.col(quoted(name))))
        return self._constraints.checked(rows, tuple(given))

    def _spread(self, rows: Any) -> Any:
        """Repartition rows by the partition columns, so that few files are written."""
        names = [quoted(field["name"]) for field in self._after.partition]
        if not names or self._session.conf("spark.sql.adaptive.enabled", "true") != "true":
            return rows
        return rows.hint("rebalance", *names)

    # --- change data

    def _changes(self, touched: Listing, act: Any, pairs: Any) -> Any:
        """Return the rows of the change data feed."""
        joined = self._taken(touched, act, (*self._matched, *self._by_source)).persist()
        self._kept.append(joined)
        from pyspark.sql import functions

        names = [quoted(field["name"]) for field in self._after.fields]

        def rows_of(frame: Any, kind: str) -> Any:
            return frame.select(*names, functions.lit(kind).alias(KIND))

        parts: list[Any] = []
        updates = [clause.number for clause in self._updates]
        old = joined.select(*(column.alias(name) for name, column in self._base().items()), ACTION)
        is_update = functions.col(ACTION).isin(updates) if updates else functions.lit(False)
        if len(updates) < len(self._matched) + len(self._by_source):
            parts.append(rows_of(old.where(~is_update), "delete"))
        if updates:
            parts.append(rows_of(old.where(is_update), "update_preimage"))
            parts.append(rows_of(self._edited(joined.where(is_update)), "update_postimage"))
        if self._inserts:
            parts.append(rows_of(self._inserted(pairs), "insert"))
        out = parts[0]
        for part in parts[1:]:
            out = out.unionByName(part)
        return out


def _decided(clauses: Sequence[Clause]) -> Any:
    """Return the number of the first clause whose condition is true."""
    from pyspark.sql import functions

    out = functions.lit(0)
    for clause in reversed(clauses):
        number = functions.lit(clause.number)
        out = (
            number
            if clause.condition is None
            else functions.when(functions.expr(clause.condition), number).otherwise(out)
        )
    return out


def _by_clause(name: str, new: dict[int, dict[str, Any]], old: Any) -> Any:
    """Return a column's value by the clause that takes the row."""
    from pyspark.sql import functions

    out: Any = None
    for number, given in new.items():
        if name in given:
            held = functions.col(ACTION) == number
            out = functions.when(held, given[name]) if out is None else out.when(held, given[name])
    return (old if out is None else out.otherwise(old)).alias(name)

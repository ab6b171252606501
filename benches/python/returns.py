"""The tables and cases of Delta's own merge benchmark: TPC-DS' `web_returns`, and sources drawn from it.

A case names fractions: of the target's files that the source is drawn from, of their rows that it holds (matched), and
of as many rows with keys that the target lacks (not matched). Names, fractions and statements are those of Delta's
benchmark; rows are made up here. Order numbers are scattered over the files, as where TPC-DS' tables are partitioned by
date before they are loaded, so that statistics of keys tell nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Files of the target: the least of which a twentieth is one.
FILES = 20
_KEY = ("wr_order_number", "wr_item_sk")
_WHOLE_TEXT = (
    "wr_returned_date_sk wr_returned_time_sk wr_item_sk wr_refunded_customer_sk wr_refunded_cdemo_sk "
    "wr_refunded_hdemo_sk wr_refunded_addr_sk wr_returning_customer_sk wr_returning_cdemo_sk wr_returning_hdemo_sk "
    "wr_returning_addr_sk wr_web_page_sk wr_reason_sk wr_order_number wr_return_quantity"
)
_MONEY_TEXT = (
    "wr_return_amt wr_return_tax wr_return_amt_inc_tax wr_fee wr_return_ship_cost wr_refunded_cash wr_reversed_charge "
    "wr_account_credit wr_net_loss"
)
_WHOLE, _MONEY = _WHOLE_TEXT.split(), _MONEY_TEXT.split()
FIELDS = [*((name, "long" if name == "wr_order_number" else "integer") for name in _WHOLE)] + [
    (name, "decimal(7,2)") for name in _MONEY
]
_DISTINCT = {"wr_returned_date_sk": 2000, "wr_returned_time_sk": 86_400, "wr_web_page_sk": 60, "wr_reason_sk": 35}
_ITEMS = 18_000
_SOME = 100_000


class Case(NamedTuple):
    """A merge: the clauses, and how the source is drawn."""

    kind: str
    files: float
    matched: float
    not_matched: float

    @property
    def source(self) -> str:
        """The folder of the source."""
        return f"source-{self.files}-{self.matched}-{self.not_matched}"

    @property
    def name(self) -> str:
        """Of the phase in the results."""
        return f"{self.kind}-{self.files}-{self.matched}-{self.not_matched}"

    @property
    def title(self) -> str:
        """In the report: files, matched rows, new rows."""
        return f"{self.kind} {self.files:g}, {self.matched:g}, {self.not_matched:g}"

    def statement(self, target: str, source: str) -> str:
        """The MERGE, for either side."""
        on = " AND ".join(f"t.{name} = s.{name}" for name in _KEY)
        clauses = {
            "single_insert_only": ["NOT MATCHED THEN INSERT *"],
            "multiple_insert_only": ["NOT MATCHED AND s.wr_item_sk % 2 = 0 THEN INSERT *", "NOT MATCHED THEN INSERT *"],
            "delete_only": ["MATCHED THEN DELETE"],
            "upsert": ["MATCHED THEN UPDATE SET *", "NOT MATCHED THEN INSERT *"],
        }[self.kind]
        whens = " ".join(f"WHEN {clause}" for clause in clauses)
        return f"MERGE INTO delta.`{target}` t USING delta.`{source}` s ON {on} {whens}"


CASES = (
    *(
        Case(kind, 0.05, 0.0, rows)
        for kind in ("single_insert_only", "multiple_insert_only")
        for rows in (0.05, 0.5, 1.0)
    ),
    Case("delete_only", 0.05, 0.05, 0.0),
    *(
        Case("upsert", *fractions)
        for fractions in (
            (0.05, 0.1, 0.01),
            (0.05, 0.0, 0.1),
            (0.05, 0.01, 0.1),
            (0.05, 0.1, 0.0),
            (0.5, 0.01, 0.001),
            (1.0, 0.01, 0.001),
            (0.05, 0.5, 0.001),
            (0.05, 0.99, 0.001),
            (0.05, 1.0, 0.001),
        )
    ),
)


def target_rows(number: int, start: int, stop: int, total: int) -> Any:
    """Make the rows of a file of the target.

    Args:
        number: The file's number.
        start: Its first row among all.
        stop: The end of its rows.
        total: Rows of the table.

    Returns:
        A `pyarrow.Table` of the columns of `FIELDS`.
    """
    import numpy as np
    import pyarrow as pa

    from actions import SEED, make_decimals

    chance = np.random.default_rng([SEED, 77, number])
    count = stop - start
    columns: dict[str, Any] = {}
    for name in _WHOLE:
        values = chance.integers(1, _DISTINCT.get(name, _SOME), count, dtype=np.int32)
        columns[name] = pa.array(values, mask=None if name in _KEY else chance.random(count) < 0.04)  # noqa: PLR2004
    # Of all numbers below the total each comes once: a step without a common divisor walks through them.
    place = np.arange(start, stop, dtype=np.int64)
    columns["wr_order_number"] = pa.array(place * _step(total) % total)
    columns["wr_item_sk"] = pa.array((place % _ITEMS + 1).astype(np.int32))
    for name in _MONEY:
        columns[name] = make_decimals(chance.integers(0, 1_000_000, count)).cast(pa.decimal128(7, 2))
    return pa.table(columns)


def _step(total: int) -> int:
    import math

    return next(step for step in range(int(total * 0.618) | 1, 2 * total, 2) if math.gcd(step, total) == 1)


def source_rows(case: Case, files: Sequence[Any], total: int) -> Any:
    """Draw a source.

    Args:
        case: Says which.
        files: The rows of each file of the target.
        total: Rows of the table.

    Returns:
        A `pyarrow.Table`; matched rows have another quantity than the target's.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from actions import SEED

    chosen = pa.concat_tables(files[: max(1, round(case.files * len(files)))])
    chance = np.random.default_rng([SEED, 78])
    parts = []
    for share, new in ((case.matched, False), (case.not_matched, True)):
        at = np.sort(chance.choice(len(chosen), round(share * len(chosen)), replace=False))
        rows = chosen.take(pa.array(at))
        quantity = pc.add(pc.fill_null(rows["wr_return_quantity"], 0), pa.scalar(1, pa.int32()))
        rows = rows.set_column(rows.column_names.index("wr_return_quantity"), "wr_return_quantity", quantity)
        if new:
            orders = pc.add(rows["wr_order_number"], pa.scalar(total))
            rows = rows.set_column(rows.column_names.index("wr_order_number"), "wr_order_number", orders)
        parts.append(rows)
    return pa.concat_tables(parts)

"""Opens real tables and a generated table of a million files, and says what came out and how long it took.

python dev/demo.py --cache .bench [--files 1000000]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tarfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import deltafast
from deltafast import DeltaTable, QueryBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "data" / "corpus"
#: Tables of the corpus that show something, each with a word on what.
SHOWN = {
    "deletion vectors": ("table-with-dv-small", "deletion"),
    "column mapping": ("column_mapping", "mapping"),
    "partitions and statistics": ("basic_partitioned", "partition"),
}
LISTED = 5


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what was done and how long it took."""
    start = time.perf_counter()
    yield
    print(f"  {what}: {1000 * (time.perf_counter() - start):.1f} ms")


def real_tables(cache: Path) -> list[tuple[str, Path]]:
    """A few of the tables shipped for the tests, unpacked into the cache."""
    folder = cache / "corpus"
    if not (folder / ".unpacked").exists():
        with tarfile.open(CORPUS / "corpus.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        (folder / ".unpacked").touch()
    manifest = json.loads((CORPUS / "manifest.json").read_text())
    names = {entry["name"]: entry["path"] for entry in manifest["tables"]}
    found: list[tuple[str, Path]] = []
    for title, (wanted, part) in SHOWN.items():
        name = wanted if wanted in names else next((n for n in sorted(names) if part in n.lower()), None)
        if name is not None and (path := next(folder.glob(f"**/{names[name]}"), None)) is not None:
            found.append((f"{title}: {name}", path))
    return found


def show_table(title: str, path: Path) -> None:
    """Open, describe and read one small table."""
    print(f"\n{title}")
    with timed("open"):
        table = DeltaTable(path)
    protocol = table.protocol()
    features = ", ".join(protocol.reader_features or ["no features"])
    print(f"  version {table.version()}, reader protocol {protocol.min_reader_version} ({features})")
    show_schema(table)
    with timed("list files"):
        files = table.files()
    for name in files[:LISTED]:
        print(f"    {name}")
    with timed("read"):
        rows = table.to_pyarrow_table()
    print(f"  {rows.num_rows} rows in {len(files)} files")
    print("    " + str(rows.slice(0, LISTED).to_pandas()).replace("\n", "\n    "))


def show_schema(table: DeltaTable) -> None:
    """Print the columns, with their Arrow types."""
    for field in pa.schema(table):
        print(f"    {field.name}: {field.type}")


def generate(cache: Path, name: str, scale: float) -> Path:
    """Have the benchmarks' generator make a table, once."""
    sys.path.insert(0, str(ROOT / "benches" / "python"))
    from generate import ensure

    print(f"\nmaking the table {name}, unless {cache} holds it", flush=True)
    return ensure(name, cache, scale).path


def show_million(path: Path) -> None:
    """Open, plan and list a table of very many files."""
    print(f"a generated table of very many files: {path}")
    with timed("open (version, schema)"):
        table = DeltaTable(path)
        table.schema()
    show_schema(table)
    day = table.metadata().partition_columns[0]
    with timed("list partitions"):
        wanted = table.partitions()[0][day]
    with timed("stream all files with all statistics"):
        batches = [(batch.num_rows, batch.nbytes) for batch in table.add_actions_stream(flatten=True)]
    print(f"  {sum(rows for rows, _ in batches)} files, {sum(size for _, size in batches) / 1e6:.0f} MB of Arrow")
    predicate = f"{day} = '{wanted}'"
    for run in ("plan", "plan again"):
        with timed(f"{run}: {predicate}"):
            plan = table.plan(predicate)
    print(f"  {plan}")
    with timed("files of that day"):
        pruned = table.files(file_pruning_predicate=predicate)
    for name in pruned[:LISTED]:
        print(f"    {name}")
    with timed("refresh, nothing new"):
        table.update_incremental()


def show_rows(path: Path) -> None:
    """Scan a generated table with data files in several ways."""
    print(f"a generated table with rows: {path}")
    table = DeltaTable(path)
    names = [field.name for field in table.schema().fields]
    with timed("scan of all columns"):
        rows = sum(batch.num_rows for batch in table.scan(string_view=True))
    print(f"  {rows} rows x {len(names)} columns")
    with timed("scan of two columns"):
        sum(batch.num_rows for batch in table.scan(columns=names[:2], string_view=True))
    with timed("count"):
        table.count()
    query = f"SELECT count(*) AS n, min({names[0]}), max({names[0]}) FROM t"
    with timed(query):
        found = QueryBuilder().register("t", table).execute(query).read_all().to_pylist()
    print(f"  {found[0]}")


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Shows what deltafast does.")
    parser.add_argument("--cache", type=Path, default=Path(".bench"))
    parser.add_argument("--files", type=int, default=1_000_000, help="of the generated table; 0 for none")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    import_module("pandas")  # its import is not what is timed below
    print(f"deltafast {deltafast.__version__} ({deltafast.build_profile()} build)")
    for title, path in real_tables(options.cache):
        show_table(title, path)
    if options.files == 0:
        return
    scale = options.files / 1_000_000
    show_million(generate(options.cache, "log-checkpoint", scale))
    show_rows(generate(options.cache, "data", min(scale, 0.1)))


if __name__ == "__main__":
    main()

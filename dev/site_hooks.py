"""Hooks of MkDocs: pages from files outside of `docs/`, reference pages, links to files that are not pages.

No text is written twice: the landing page is README.md, the reference comes from docstrings.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Pages of files outside of `docs/`.
PAGES = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contribute.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
#: Reference pages: title, and the objects that they describe.
REFERENCE = {
    "reference/table.md": ("DeltaTable", ["deltafast.table.DeltaTable"]),
    "reference/metadata.md": (
        "Metadata",
        ["deltafast._handle.Metadata", "deltafast._handle.ProtocolVersions", "deltafast._handle.DeltaTableConfig"],
    ),
    "reference/write.md": ("Write rows", ["deltafast.writer"]),
    "reference/merge.md": ("Merge", ["deltafast._ops.merge.TableMerger"]),
    "reference/optimize.md": ("Optimize", ["deltafast._ops.optimize.TableOptimizer"]),
    "reference/alter.md": ("Alter", ["deltafast._ops.alter.TableAlterer", "deltafast._ops.alter.TableFeatures"]),
    "reference/explain.md": ("Explain", ["deltafast._ops.scan_explanation"]),
    "reference/sql.md": ("SQL", ["deltafast._sql.run.sql", "deltafast._sql.query_result.QueryResult"]),
    "reference/readers.md": ("Readers", ["deltafast._interop.record_batch_reader.RecordBatchReader"]),
    "reference/queries.md": ("Queries", ["deltafast._interop.duckdb_query.QueryBuilder"]),
    "reference/convert.md": (
        "Convert",
        [
            "deltafast._ops.convert_parquet.convert_to_deltalake",
            "deltafast._ops.add_actions.create_table_with_add_actions",
        ],
    ),
    "reference/schema.md": (
        "Schema",
        [
            "deltafast.schema.Schema",
            "deltafast.schema.StructType",
            "deltafast.schema.Field",
            "deltafast.schema.PrimitiveType",
            "deltafast.schema.ArrayType",
            "deltafast.schema.MapType",
            "deltafast.schema.VariantType",
            "deltafast.schema.DataType",
        ],
    ),
    "reference/transaction.md": ("Transactions", ["deltafast.transaction"]),
    "reference/exceptions.md": ("Exceptions", ["deltafast.exceptions", "deltafast.exceptions.ErrorCode"]),
    "reference/stores.md": ("Stores", ["deltafast.stores", "deltafast.check", "deltafast.filesystem"]),
    "reference/catalog.md": (
        "Catalogs",
        ["deltafast.catalog", "deltafast.catalog.unity", "deltafast._catalog.sharing.client.SharingClient"],
    ),
    "reference/credentials.md": ("Credentials", ["deltafast.credentials"]),
    "reference/polars.md": ("Polars", ["deltafast.polars"]),
    "reference/doctor.md": ("Doctor", ["deltafast.doctor", "deltafast._doctor.finding.Finding"]),
    "reference/layout.md": (
        "Layout",
        ["deltafast._layout.measure", "deltafast._layout.layout_data", "deltafast._layout.picture"],
    ),
    "reference/progress.md": ("Progress", ["deltafast.progress"]),
    "reference/spark.md": ("Spark", ["deltafast.spark", "deltafast.spark.tables", "deltafast.spark.exceptions"]),
}
#: A link of Markdown: text, target, anchor.
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text(encoding="utf-8")))
    for uri, (title, names) in REFERENCE.items():
        content = "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)])
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Lead links to the pages of files; a link to a file that has no page becomes text."""
    uri = page.file.src_uri
    source = PAGES.get(uri, f"docs/{uri}")

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        found = next((name for name, file in PAGES.items() if file == path), path.removeprefix("docs/"))
        if path == "docs/README.md":  # the list of pages, which the site has as its navigation
            return text
        if files.get_file_from_path(found) is None:
            return match[0] if path.startswith("docs/") else text
        return f"[{text}]({posixpath.relpath(found, posixpath.dirname(uri) or '.')}{anchor})"

    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)

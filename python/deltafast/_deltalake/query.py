"""The class with the name `deltalake.QueryBuilder`; see `table`."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import duckdb

from deltafast._deltalake.fields import described_reader
from deltafast._handle import handle_of
from deltafast._interop.duckdb_query import ViewQueryBuilder
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltafast._handle import HandleOwner

__all__ = ["QueryBuilder"]

#: Settings of DataFusion 55, by the part of its configuration; misspelled ones are refused.
_DATAFUSION: dict[str, str] = {
    "catalog": (
        "create_default_catalog_and_schema default_catalog default_schema format has_header information_schema "
        "location newlines_in_values"
    ),
    "execution": (
        "batch_size coalesce_batches collect_statistics enable_ansi_mode enable_file_stream_work_stealing "
        "enable_migration_aggregate enable_recursive_ctes enforce_batch_size_in_joins "
        "hash_join_buffering_capacity keep_partition_by_columns listing_table_factory_infer_partitions "
        "listing_table_ignore_subdirectory max_buffered_batches_per_output_file max_spill_file_size_bytes "
        "meta_fetch_concurrency minimum_parallel_output_files objectstore_writer_buffer_size "
        "parquet.allow_single_file_parallelism parquet.binary_as_string parquet.bloom_filter_fpp "
        "parquet.bloom_filter_ndv parquet.bloom_filter_on_read parquet.bloom_filter_on_write parquet.coerce_int96 "
        "parquet.coerce_int96_tz parquet.column_index_truncate_length parquet.compression "
        "parquet.content_defined_chunking.enabled parquet.content_defined_chunking.max_chunk_size "
        "parquet.content_defined_chunking.min_chunk_size parquet.content_defined_chunking.norm_level "
        "parquet.created_by parquet.data_page_row_count_limit parquet.data_pagesize_limit "
        "parquet.dictionary_enabled parquet.dictionary_page_size_limit parquet.enable_page_index parquet.encoding "
        "parquet.force_filter_selections parquet.max_in_list_size parquet.max_predicate_cache_size "
        "parquet.max_row_group_bytes parquet.max_row_group_size "
        "parquet.maximum_buffered_record_batches_per_stream parquet.maximum_parallel_row_group_writers "
        "parquet.metadata_size_hint parquet.pruning parquet.pushdown_filters parquet.reorder_filters "
        "parquet.schema_force_view_types parquet.skip_arrow_metadata parquet.skip_metadata "
        "parquet.statistics_enabled parquet.statistics_truncate_length parquet.write_batch_size "
        "parquet.writer_version perfect_hash_join_min_key_density perfect_hash_join_small_build_threshold "
        "planning_concurrency skip_partial_aggregation_probe_ratio_threshold "
        "skip_partial_aggregation_probe_rows_threshold skip_physical_aggregate_schema_check "
        "soft_max_rows_per_output_file sort_in_place_threshold_bytes sort_pushdown_buffer_capacity "
        "sort_spill_reservation_bytes spill_compression split_file_groups_by_statistics target_partitions "
        "time_zone use_row_number_estimates_to_optimize_partitioning"
    ),
    "explain": (
        "analyze_categories analyze_level format logical_plan_only physical_plan_only show_schema show_sizes "
        "show_statistics tree_maximum_render_width"
    ),
    "format": (
        "date_format datetime_format duration_format null safe time_format timestamp_format timestamp_tz_format "
        "types_info"
    ),
    "optimizer": (
        "allow_symmetric_joins_without_pruning default_filter_selectivity "
        "enable_aggregate_dynamic_filter_pushdown enable_distinct_aggregation_soft_limit "
        "enable_dynamic_filter_pushdown enable_join_dynamic_filter_pushdown enable_leaf_expression_pushdown "
        "enable_physical_uncorrelated_scalar_subquery enable_piecewise_merge_join enable_round_robin_repartition "
        "enable_sort_pushdown enable_topk_aggregation enable_topk_dynamic_filter_pushdown enable_topk_repartition "
        "enable_unions_to_filter enable_window_limits enable_window_topn expand_views_at_output "
        "filter_null_join_keys hash_join_inlist_pushdown_max_distinct_values hash_join_inlist_pushdown_max_size "
        "hash_join_single_partition_threshold hash_join_single_partition_threshold_rows join_reordering "
        "max_passes prefer_existing_sort prefer_existing_union prefer_hash_join preserve_file_partitions "
        "repartition_aggregations repartition_file_min_size repartition_file_scans repartition_joins "
        "repartition_sorts repartition_windows skip_failed_rules subset_repartition_threshold "
        "top_down_join_key_reordering use_statistics_registry"
    ),
    "runtime": (
        "file_statistics_cache_limit list_files_cache_limit list_files_cache_ttl max_spill_merge_fan_in "
        "max_temp_directory_size memory_limit metadata_cache_limit temp_directory"
    ),
    "spark": "map_key_dedup_policy",
    "sql_parser": (
        "collect_spans default_null_ordering dialect enable_ident_normalization "
        "enable_options_value_normalization enable_subquery_sort_elimination map_string_types_to_utf8view "
        "parse_float_as_decimal recursion_limit support_varchar_with_length"
    ),
}
#: Settings with an equivalent in DuckDB, and its name.
_DUCKDB = {
    "datafusion.execution.target_partitions": "threads",
    "datafusion.runtime.max_temp_directory_size": "max_temp_directory_size",
    "datafusion.runtime.memory_limit": "memory_limit",
}


class QueryBuilder(ViewQueryBuilder):
    """`deltafast.QueryBuilder` with strings as views, and with rows of arro3 if that is installed.

    Columns that a query takes unchanged from one table keep NOT NULL and the metadata of their fields.

    Args:
        session_config: Settings of DuckDB, or of DataFusion (`datafusion.*`): the limits of memory, disk and threads
            are set for DuckDB, others are ignored.
        external_access: As for `deltafast.QueryBuilder`.

    Raises:
        InvalidArgumentError: DataFusion has no such setting.
    """

    def __init__(self, session_config: Mapping[str, str] | None = None, *, external_access: bool = False) -> None:
        super().__init__(_settings(session_config or {}), external_access=external_access)
        self._fields: dict[str, dict[str, pa.Field[Any]]] = {}

    def register(self, table_name: str, delta_table: HandleOwner) -> QueryBuilder:
        """Register a table under a name."""
        super().register(table_name, delta_table)
        schema: Any = handle_of(delta_table).schema().to_arrow()
        self._fields[table_name.lower()] = {field.name: field for field in schema}
        return self

    def execute(self, sql: str) -> Any:
        """Run one query; returns an `arro3.core.RecordBatchReader`, or pyarrow's if arro3 is not installed."""
        rows = described_reader(super().execute(sql), self._taken(sql))
        try:
            from arro3.core import RecordBatchReader
        except ImportError:
            return rows
        return RecordBatchReader.from_arrow(rows)

    def _explained(self, error: duckdb.Error) -> str | None:
        """Return a message with the reason why a query of DataFusion may fail."""
        explained = super()._explained(error)
        is_sql = isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException))
        if explained is None and is_sql:
            return f"{error}\nQueryBuilder of deltafast runs DuckDB's SQL, not DataFusion's."
        return explained

    def _taken(self, sql: str) -> dict[str, pa.Field[Any]]:
        """Return the table's fields of the columns that a query takes from it, by the columns' names in the result."""
        if not any(not field.nullable or field.metadata for of in self._fields.values() for field in of.values()):
            return {}
        try:
            found = self._connection.cursor().execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        except duckdb.Error:  # there is no extension `json`
            return {}
        return _columns_of(json.loads(found[0]) if found else {}, self._fields)


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for DuckDB.

    Raises:
        InvalidArgumentError: DataFusion has no such setting.
    """
    out: dict[str, str] = {}
    for name, value in given.items():
        prefix, _, rest = name.partition(".")
        part, _, key = rest.partition(".")
        if prefix == "datafusion" and key not in _DATAFUSION.get(part, "").split():
            message = f"Generic DeltaTable error: session_config: DataFusion has no setting {name}"
            raise InvalidArgumentError(message)
        out[_DUCKDB.get(name, name)] = value
    return out


def _columns_of(parsed: dict[str, Any], tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of the result columns that are columns of the only table of a parsed statement."""
    none: Any = {}
    statements: list[Any] = parsed.get("statements") or []
    node: Any = statements[0].get("node", none) if len(statements) == 1 else none
    source: Any = node.get("from_table") or none
    is_plain = node.get("type") == "SELECT_NODE" and source.get("type") == "BASE_TABLE"
    # Names may refer to other rows, and grouping sets produce nulls.
    if not is_plain or node["cte_map"]["map"] or node["group_sets"] or source.get("column_name_alias"):
        return {}
    fields = tables.get(str(source.get("table_name")).lower())
    if fields is None or source.get("schema_name") or source.get("catalog_name"):
        return {}
    by_name = {name.lower(): field for name, field in fields.items()}
    taken: list[tuple[str, Any]] = []
    for item in cast("list[dict[str, Any]]", node["select_list"]):
        names: list[str] = item.get("column_names") or []
        if item.get("class") == "STAR":
            is_changed = item.get("expr") or item.get("replace_list") or item.get("rename_list")
            taken += [(name, None if is_changed else field) for name, field in fields.items()]
        elif item.get("class") == "COLUMN_REF":
            taken.append((item.get("alias") or names[-1], by_name.get(names[-1].lower())))
        else:
            taken.append((item.get("alias") or "", None))
    # Two columns of a result may have the same name.
    count = Counter(name.lower() for name, _ in taken)
    return {name: field for name, field in taken if field is not None and count[name.lower()] == 1}

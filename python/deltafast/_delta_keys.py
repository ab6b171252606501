"""Names of Delta in properties of tables, metadata of fields and domains, as far as several modules need them."""

from __future__ import annotations

from typing import Final

# Properties of tables.
CATALOG_MANAGED_FEATURE: Final = "delta.feature.catalogManaged"
COLUMN_MAPPING_MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
COLUMN_MAPPING_MODE: Final = "delta.columnMapping.mode"
ENABLE_CHANGE_DATA_FEED: Final = "delta.enableChangeDataFeed"
ENABLE_ROW_TRACKING: Final = "delta.enableRowTracking"
MATERIALIZED_ROW_COMMIT_VERSION: Final = "delta.rowTracking.materializedRowCommitVersionColumnName"
MATERIALIZED_ROW_ID: Final = "delta.rowTracking.materializedRowIdColumnName"
MIN_READER_VERSION: Final = "delta.minReaderVersion"
MIN_WRITER_VERSION: Final = "delta.minWriterVersion"
TARGET_FILE_SIZE: Final = "delta.targetFileSize"
UNIFORM_FORMATS: Final = "delta.universalFormat.enabledFormats"

# Metadata of fields.
COLUMN_MAPPING_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
GENERATION_EXPRESSION: Final = "delta.generationExpression"
#: The beginning of all keys of an identity column.
IDENTITY: Final = "delta.identity"
IDENTITY_ALLOW_EXPLICIT_INSERT: Final = "delta.identity.allowExplicitInsert"
IDENTITY_START: Final = "delta.identity.start"
IDENTITY_STEP: Final = "delta.identity.step"

# Domains.
CLUSTERING_DOMAIN: Final = "delta.clustering"

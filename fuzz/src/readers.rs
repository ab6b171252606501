//! The readers of foreign bytes, each as a function of one input. `tests/rust/fuzz.rs` calls them with mutations of the
//! corpus, the targets in `fuzz/fuzz_targets` with the inputs of libFuzzer.
//!
//! What a reader returns does not matter; it must return. A panic is a failure.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringViewArray};
use bytes::Bytes;
use deltafast::dv::{DeletionVectorDescriptor, RoaringBitmapArray, z85};
use deltafast::exec::ItemSource;
use deltafast::expr::BoundExpr;
use deltafast::log::{
    CheckpointInstance, CheckpointKind, ChecksumFileContents, LastCheckpointHint,
};
use deltafast::parse::checkpoint::{CheckpointReader, FileActionKind};
use deltafast::parse::commit::{self as commits, ActionSelection};
use deltafast::parse::stats::{self, StatsLeafColumn, has_bounds};
use deltafast::parse::{FileActionProjection, FileBatch, StatsColumn};
use deltafast::pq::{FileSpec, FooterCache, open_raw, read};
use deltafast::protocol::calendar::TimeZoneSpec;
use deltafast::protocol::log_path::LogFile;
use deltafast::protocol::schema::{DataType, StringLayout, StructField, StructType};
use deltafast::protocol::{canonical_json, data_path, duration, time};
use deltafast::store::{ExternalPaths, StorageOptions, Store, StoreObject, TableStores, open};

/// Reads a commit: its file actions with all their columns, and its other actions.
pub fn commit() -> impl Fn(&[u8]) {
    let files = Some(all_columns());
    let selection = ActionSelection {
        adds: files.clone(),
        removes: files.clone(),
        cdc: files,
        protocol_and_metadata: true,
        transactions_and_domains: true,
        info: true,
        sidecars: true,
    };
    move |input| {
        let text = Bytes::copy_from_slice(input);
        let chunk_starts = [0, text.len() / 2];
        if let Ok(parsed) = commits::parse(&text, 0..text.len(), &selection, &chunk_starts) {
            for batch in [&parsed.adds, &parsed.removes, &parsed.cdc] {
                read_columns(batch);
            }
        }
        let _ = commits::non_file_actions(&text, &selection);
    }
}

/// Reads each line as the statistics of a file.
pub fn statistics() -> impl Fn(&[u8]) {
    |input| {
        let text = String::from_utf8_lossy(input);
        let lines: StringViewArray = text.lines().map(Some).collect();
        for column in [
            StatsColumn::Json(lines.clone()),
            StatsColumn::EscapedJson(lines.clone()),
        ] {
            let stats = stats::parse(&column, &stats_leaves(), TimeZoneSpec::UTC).unwrap();
            assert_eq!(stats.num_records.len(), lines.len());
        }
    }
}

/// Reads a hint of the last checkpoint, and the same bytes as a version checksum.
pub fn last_checkpoint() -> impl Fn(&[u8]) {
    |input| {
        let _ = LastCheckpointHint::parse(input);
        let _ = ChecksumFileContents::parse(input);
        let _ = std::str::from_utf8(input).map(canonical_json::checksum);
    }
}

/// Reads a deletion vector: its bitmap, and a descriptor of each storage type.
pub fn deletion_vector() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(positions) = RoaringBitmapArray::deserialize(input) {
            let _ = positions.live_row_mask(0..100_000);
            let _ = positions.count(0..u64::MAX);
        }
        let text = String::from_utf8_lossy(input);
        let _ = z85::decode(&text);
        for storage_type in ["i", "u", "p"] {
            let descriptor = DeletionVectorDescriptor {
                storage_type: storage_type.into(),
                path_or_inline_dv: text.as_ref().into(),
                offset: Some(1),
                size_in_bytes: 40,
                cardinality: 6,
            };
            let _ = deltafast::dv::load(&descriptor, |_| {
                Err(deltafast::error::Error::invalid("no store"))
            });
        }
    }
}

/// Reads the JSON of a schema, which is the same after it was written and read again.
pub fn schema() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(schema) = StructType::parse(&String::from_utf8_lossy(input)) {
            let _ = schema.to_arrow(StringLayout::View);
            assert_eq!(
                StructType::parse(&schema.to_json().to_string()).unwrap(),
                schema
            );
        }
    }
}

/// Reads a partition value of each type, a timestamp and a duration.
pub fn partition_value() -> impl Fn(&[u8]) {
    let types = [
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal(38,10)",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "boolean",
        "void",
    ]
    .map(|name| DataType::from_name(name).unwrap());
    let zone = TimeZoneSpec::parse("America/New_York").unwrap();
    move |input| {
        let text = String::from_utf8_lossy(input);
        let values: StringViewArray = [Some(text.as_ref()), None].into_iter().collect();
        for data_type in &types {
            let _ = deltafast::protocol::partition_value::parse(&values, data_type, zone);
        }
        let _ = time::parse_timestamp(input, zone);
        let _ = duration::parse_duration_ms(&text);
    }
}

/// Reads the name of a log file and the path of a data file, which never leads out of the table.
pub fn path() -> impl Fn(&[u8]) {
    let table = TableStores::new(
        open("/table", &StorageOptions::new()).unwrap(),
        StorageOptions::new(),
        ExternalPaths::Refused,
    );
    move |input| {
        let text = String::from_utf8_lossy(input);
        let _ = LogFile::parse(&text);
        if let Ok(path) = data_path::canonical(&text)
            && let Ok(file) = table.file(&path, None)
        {
            assert!(
                !file.path.split('/').any(|part| part == ".."),
                "{} climbs to {}",
                text,
                file.path
            );
        }
    }
}

/// Reads the JSON of a bound expression.
pub fn expression() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(bound) = BoundExpr::from_json(&String::from_utf8_lossy(input)) {
            let _ = bound.to_string();
            let _ = bound.columns();
        }
    }
}

/// Reads a checkpoint: all its actions.
pub fn checkpoint() -> impl Fn(&[u8]) {
    let folder = ScratchFolder::new("checkpoint");
    move |input| {
        let checkpoint = CheckpointInstance {
            version: 1,
            kind: CheckpointKind::Classic,
            files: vec![folder.file(input)],
        };
        let Ok(reader) = CheckpointReader::open(&checkpoint, &folder.store, true) else {
            return;
        };
        let _ = reader.non_file_actions(&ActionSelection {
            protocol_and_metadata: true,
            transactions_and_domains: true,
            ..ActionSelection::default()
        });
        for kind in [FileActionKind::Adds, FileActionKind::Removes] {
            let sources: Vec<ItemSource<FileBatch>> = reader.files(kind, &Arc::new(all_columns()));
            for batch in sources.into_iter().flatten() {
                let Ok(batch) = batch else { break };
                read_columns(&batch);
            }
        }
    }
}

/// Reads a data file: by the columns of the corpus, all rows and those that match, and as it is.
pub fn data_file() -> impl Fn(&[u8]) {
    let files = DataFiles::new("data");
    move |input| {
        let file = files.file(input);
        for filtered in [false, true] {
            for batch in files.rows(file.clone(), filtered).into_iter().flatten() {
                batch
                    .columns()
                    .iter()
                    .for_each(|column| column.to_data().validate_full().unwrap());
            }
        }
        let Ok(raw) = open_raw(&file) else { return };
        let groups: Vec<usize> = (0..raw.row_groups().len()).collect();
        for layout in [StringLayout::View, StringLayout::Plain] {
            if let Ok(batches) = raw.read(&groups, |_| true, layout, 1000, 1 << 20) {
                batches
                    .map_while(Result::ok)
                    .for_each(|batch| assert!(batch.num_rows() <= 1000));
            }
        }
    }
}

fn stats_leaves() -> Vec<StatsLeafColumn> {
    [
        "byte",
        "integer",
        "long",
        "float",
        "double",
        "decimal(9,2)",
        "string",
        "date",
        "timestamp",
        "timestamp_ntz",
        "boolean",
        "binary",
    ]
    .iter()
    .map(|name| {
        let data_type = DataType::from_name(name).unwrap();
        StatsLeafColumn {
            path: vec!["c".to_owned(), (*name).to_owned()],
            bounds: has_bounds(&data_type),
            data_type,
        }
    })
    .chain([StatsLeafColumn {
        path: vec!["id".to_owned()],
        data_type: DataType::Long,
        bounds: true,
    }])
    .collect()
}

fn all_columns() -> FileActionProjection {
    FileActionProjection {
        partition: vec!["day".to_owned(), "p".to_owned()],
        stats: true,
        stats_text: false,
        leaves: stats_leaves().into_iter().map(|leaf| leaf.path).collect(),
        tags: true,
        time: true,
        row_ids: true,
        data_change: true,
        clustering: true,
        batch_rows: None,
    }
}

fn read_columns(batch: &FileBatch) {
    for row in 0..batch.len() {
        let _ = data_path::canonical(batch.path.value(row));
        let _ = batch.dv_unique_id(row);
    }
    if let Some(column) = &batch.stats {
        stats::parse(column, &stats_leaves(), TimeZoneSpec::UTC).unwrap();
    }
    for values in &batch.partition {
        let _ =
            deltafast::protocol::partition_value::parse(values, &DataType::Date, TimeZoneSpec::UTC);
    }
}

/// A folder on disk that has the input as a file.
struct ScratchFolder {
    folder: PathBuf,
    store: Arc<dyn Store>,
}

impl ScratchFolder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("deltafast-fuzz-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self {
            store: open(folder.to_str().unwrap(), &StorageOptions::new()).unwrap(),
            folder,
        }
    }

    fn file(&self, bytes: &[u8]) -> StoreObject {
        std::fs::write(self.folder.join("f.parquet"), bytes).unwrap();
        StoreObject {
            store: Arc::clone(&self.store),
            path: "f.parquet".to_owned(),
            size: Some(bytes.len() as u64),
        }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Data files in a folder of their own, and the columns of the corpus.
pub struct DataFiles {
    folder: ScratchFolder,
    columns: Vec<StructField>,
    filter: Arc<BoundExpr>,
}

impl DataFiles {
    /// Files in a folder with `name` in its name.
    pub fn new(name: &str) -> Self {
        let schema: Vec<(String, serde_json::Value)> =
            serde_json::from_slice(include_bytes!("../data_file_schema.json")).unwrap();
        let columns = schema
            .into_iter()
            .map(|(name, data_type)| {
                StructField::new(&name, DataType::from_json(&data_type).unwrap(), true)
            })
            .collect();
        let id = serde_json::json!({"column":{"path":["id"],"data_type":"long"}});
        let equal = serde_json::json!({"call":{"function":"=","arguments":[id, {"literal":{"value":17,"data_type":"long"}}],"data_type":"boolean"}});
        let filter = BoundExpr::from_json(
            &serde_json::json!({"expr": equal, "ansi": true, "zone": "UTC"}).to_string(),
        )
        .unwrap();
        Self {
            folder: ScratchFolder::new(name),
            columns,
            filter: Arc::new(filter),
        }
    }

    /// Writes the file.
    pub fn file(&self, bytes: &[u8]) -> StoreObject {
        self.folder.file(bytes)
    }

    /// All rows, or those that match.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn rows(
        &self,
        file: StoreObject,
        filtered: bool,
    ) -> deltafast::error::Result<Vec<RecordBatch>> {
        let filter = filtered.then(|| Arc::clone(&self.filter));
        let spec = FileSpec {
            filter,
            filter_rows: filtered,
            ..FileSpec::new(file, self.columns.clone())
        };
        read(spec, &Arc::new(FooterCache::default())).collect()
    }
}

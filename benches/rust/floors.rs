//! What the work costs without a table format: the floors that `benches/python/run.py` compares
//! with.
//!
//! ```text
//! floors checkpoint FILE...            decode `add`, parse statistics by serde into borrowed structs
//! floors json FILE...                  parse commit lines and statistics by serde, likewise
//! floors scan [--columns A,B] FILE...  decode data files, text as views, 32k rows a batch
//! ```
//!
//! One thread a processor, files (for one file, row groups or parts at newlines) dealt out by a
//! counter. Prints one line of JSON: wall and CPU seconds, peak memory in MiB, rows.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use serde::Deserialize;

/// The statistics columns of the generated tables.
#[derive(Deserialize)]
#[allow(dead_code)]
struct Bounds<'a> {
    id: Option<i64>,
    score: Option<f64>,
    #[serde(borrow)]
    city: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event_time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    ship_date: Option<Cow<'a, str>>,
    amount: Option<f64>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Nulls {
    id: Option<i64>,
    score: Option<i64>,
    city: Option<i64>,
    event_time: Option<i64>,
    ship_date: Option<i64>,
    amount: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct Stats<'a> {
    num_records: Option<i64>,
    #[serde(borrow)]
    min_values: Option<Bounds<'a>>,
    #[serde(borrow)]
    max_values: Option<Bounds<'a>>,
    null_count: Option<Nulls>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Partition<'a> {
    #[serde(borrow)]
    date: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct Add<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    partition_values: Partition<'a>,
    size: i64,
    modification_time: i64,
    #[serde(borrow)]
    stats: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    add: Option<Add<'a>>,
}

fn metadata(file: &File) -> ArrowReaderMetadata {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::load(file, options.clone()).unwrap();
    let schema = Arc::new(Schema::new(
        plain
            .schema()
            .fields()
            .iter()
            .map(|f| Arc::new(views(f)))
            .collect::<Vec<_>>(),
    ));
    ArrowReaderMetadata::load(file, options.with_schema(schema)).unwrap()
}

fn views(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|f| Arc::new(views(f))).collect())
        }
        DataType::List(element) => DataType::List(Arc::new(views(element))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(views(entries)), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// Runs `work` on all of `tasks`, as many at once as there are processors; gives the sum of what it
/// returns.
fn on_all_cores<T: Sync>(tasks: &[T], work: impl Fn(&T) -> u64 + Sync) -> u64 {
    let (next, sum) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    sum.fetch_add(work(task), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// Every row group of every file, with the file's footer read once.
fn groups(files: &[String]) -> Vec<(String, ArrowReaderMetadata, usize)> {
    let mut out = Vec::new();
    for file in files {
        let meta = metadata(&File::open(file).unwrap());
        out.extend((0..meta.metadata().num_row_groups()).map(|n| (file.clone(), meta.clone(), n)));
    }
    out
}

fn checkpoint(files: &[String]) -> u64 {
    on_all_cores(&groups(files), |(file, meta, group)| {
        let wanted = [
            "path",
            "size",
            "modificationTime",
            "partitionValues",
            "stats",
            "deletionVector",
        ];
        let schema = meta.parquet_schema();
        let leaves = schema
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, c)| matches!(c.path().parts(), [a, b, ..] if a == "add" && wanted.contains(&b.as_str())))
            .map(|(n, _)| n);
        let mask = ProjectionMask::leaves(schema, leaves);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            File::open(file).unwrap(),
            meta.clone(),
        );
        let mut rows = 0;
        for batch in builder
            .with_projection(mask)
            .with_row_groups(vec![*group])
            .with_batch_size(64 * 1024)
            .build()
            .unwrap()
        {
            let batch = batch.unwrap();
            let add: &StructArray = batch.column(0).as_struct();
            rows += (add.len() - add.null_count()) as u64;
            let Some(stats) = add.column_by_name("stats") else {
                continue;
            };
            for text in stats.as_string_view().iter().flatten() {
                std::hint::black_box(serde_json::from_str::<Stats<'_>>(text).unwrap());
            }
        }
        rows
    })
}

fn json(files: &[String]) -> u64 {
    let mut parts = Vec::new();
    for file in files {
        let size = std::fs::metadata(file).unwrap().len();
        parts.push((file.clone(), size));
    }
    on_all_cores(&parts, |(file, _)| {
        let text = std::fs::read(file).unwrap();
        let mut rows = 0;
        for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            if let Some(add) = serde_json::from_slice::<Line<'_>>(line).unwrap().add {
                rows += 1;
                if let Some(stats) = &add.stats {
                    std::hint::black_box(serde_json::from_str::<Stats<'_>>(stats).unwrap());
                }
                std::hint::black_box(add);
            }
        }
        rows
    })
}

fn scan(columns: Option<&str>, files: &[String]) -> u64 {
    on_all_cores(&groups(files), |(file, meta, group)| {
        let schema = meta.parquet_schema();
        let mask = match columns {
            Some(names) => ProjectionMask::columns(schema, names.split(',')),
            None => ProjectionMask::all(),
        };
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            File::open(file).unwrap(),
            meta.clone(),
        );
        let reader = builder
            .with_projection(mask)
            .with_row_groups(vec![*group])
            .with_batch_size(32 * 1024)
            .build()
            .unwrap();
        reader
            .map(|batch| std::hint::black_box(batch.unwrap()).num_rows() as u64)
            .sum()
    })
}

fn cpu_seconds() -> f64 {
    // Fields 14 and 15 after the command's closing bracket, in ticks of a hundredth.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    [11, 12]
        .iter()
        .filter_map(|n| fields.get(*n)?.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let kind = arguments.remove(0);
    let columns = (arguments.first().map(String::as_str) == Some("--columns")).then(|| {
        arguments.remove(0);
        arguments.remove(0)
    });
    let begun = Instant::now();
    let rows = match kind.as_str() {
        "checkpoint" => checkpoint(&arguments),
        "json" => json(&arguments),
        "scan" => scan(columns.as_deref(), &arguments),
        other => panic!("no floor `{other}`; known are checkpoint, json, scan"),
    };
    println!(
        r#"{{"wall":{:.4},"cpu":{:.2},"peak_mb":{:.1},"rows":{rows}}}"#,
        begun.elapsed().as_secs_f64(),
        cpu_seconds(),
        peak_mib()
    );
}

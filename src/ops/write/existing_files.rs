//! File actions of other programs, before they are committed.
//!
//! Another program writes data files and commits their paths. A path that is not one of a data file
//! makes the whole table unreadable for every engine, and a removal of an unknown path removes
//! nothing, so both are refused.
//!
//! Protocol: "Add File and Remove File". Cost: one request per added file, or one listing of a
//! remote folder to which many are added; removals read the list of live files once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};

use crate::commit::adds::matching_live_adds;
use crate::error::{Error, NotFoundKind, Result, ResultExt};
use crate::exec::{CancellationToken, map_all, now_ms};
use crate::file_writer::partition::{check_not_hive_null, log_path};
use crate::ops::rewrite::start_state::TableOrPath;
use crate::ops::rewrite::table_paths::TablePathResolver;
use crate::ops::rewrite::target_table::TargetTable;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::commit_line::{Add, Remove};
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::schema::StructField;
use crate::protocol::{data_path, log_path as log_files, partition_value};
use crate::store::{ObjectMeta, Store, TablePath, TableStores};

/// Remote files in one folder from which on the folder is listed: a listing answers 1,000 names per
/// request, and requests for single files run side by side.
const LISTED_FILES: usize = 1000;
/// Local files that one job looks up.
const LOCAL_FILES: usize = 256;

/// A file to look up: its path in the log, where it is, and the size that its action has.
#[derive(Debug, Clone)]
struct ExpectedFile {
    log_path: String,
    store: Arc<dyn Store>,
    path: String,
    size: i64,
}

/// Checks that each action names an existing data file of the table, with the file's size. Absolute
/// paths of files below the table's root become relative, so that a file has one key.
///
/// # Errors
/// [`Error::Invalid`] for a path that is not URI-encoded, that leads out of the table or to its log,
/// and for a wrong size or partition value; [`Error::NotFound`] for a missing file.
pub(super) fn check_added_files(
    destination: &TableOrPath,
    target: &TargetTable,
    adds: &mut [Add],
    cancel: &CancellationToken,
) -> Result<()> {
    let stores = destination.stores();
    let partition = partition_fields(target)?;
    let resolver = TablePathResolver::new(stores);
    let mut expected_files = Vec::with_capacity(adds.len());
    for add in adds {
        check_partition_values(add, &partition).map_err(|e| e.at_file(&add.path))?;
        let path = locate(stores, &resolver, &add.path).map_err(|e| e.at_file(&add.path))?;
        if let Some(relative) = &path
            && is_absolute(&data_path::canonical(&add.path)?)
        {
            add.path = log_path(relative);
        }
        let (store, path) = match path {
            Some(path) => (Arc::clone(stores.root()), path),
            None => {
                let file = stores.file(&data_path::canonical(&add.path)?, None)?;
                (file.store, file.path)
            }
        };
        expected_files.push(ExpectedFile {
            log_path: add.path.clone(),
            store,
            path,
            size: add.size,
        });
    }
    check_exist(expected_files, cancel)
}

/// The partition columns of the table with their names in the log.
fn partition_fields(target: &TargetTable) -> Result<Vec<(&str, &StructField)>> {
    let mapping = features::column_mapping(&target.protocol, &target.metadata)?;
    let columns = target.metadata.partition_columns.iter();
    Ok(columns
        .filter_map(|name| target.schema.field(name))
        .map(|field| match mapping {
            ColumnMapping::None => (field.name.as_str(), field),
            _ => (field.physical_name(), field),
        })
        .collect())
}

/// Refuses values that no reader could read: a table with one of them is unreadable.
fn check_partition_values(add: &Add, partition: &[(&str, &StructField)]) -> Result<()> {
    for (name, field) in partition {
        // The transaction checks that there is a value for each column.
        let Some(value) = add.partition_values.get(*name) else {
            continue;
        };
        let text = check_not_hive_null(value.clone()).at_column(&field.name)?;
        let typed = partition_value::parse(
            &std::iter::once(text.as_deref()).collect(),
            &field.data_type,
            TimeZoneSpec::UTC,
        );
        let typed = typed.map_err(|e| e.into_invalid().at_column(&field.name))?;
        if !field.nullable && typed.is_null(0) {
            return Err(
                Error::invalid("the partition value of a NOT NULL column is null")
                    .at_column(&field.name),
            );
        }
    }
    Ok(())
}

fn is_absolute(canonical: &str) -> bool {
    canonical.starts_with('/') || canonical.contains("://")
}

/// The path of a data file below the table's root; `None` for a file outside that the caller allows.
fn locate(
    stores: &TableStores,
    resolver: &TablePathResolver,
    path: &str,
) -> Result<Option<String>> {
    check_encoding(path)?;
    let canonical = data_path::canonical(path).map_err(Error::into_invalid)?;
    let relative = if is_absolute(&canonical) {
        match resolver.resolve_log_path(path) {
            Some(relative) => relative,
            None if stores.allows_external(&canonical) => return Ok(None),
            None => return Err(outside_table()),
        }
    } else {
        canonical
    };
    if !TablePath::is_inside(&relative) {
        return Err(outside_table());
    }
    let first = relative.split('/').next().unwrap_or_default();
    if first.eq_ignore_ascii_case(log_files::LOG_DIR) {
        return Err(Error::invalid(
            "a file of the table's log cannot be one of its data files",
        ));
    }
    Ok(Some(relative.into_owned()))
}

fn outside_table() -> Error {
    Error::invalid(
        "the path must be that of a file below the table's folder, without `.`, `..` and empty parts",
    )
}

/// Refuses a path that is no URI: `#`, `?`, blanks and the like are not in one, and `%` begins an
/// encoded byte. Letters beyond ASCII may stand as they are, as Spark writes them.
fn check_encoding(path: &str) -> Result<()> {
    let is_encoded = path.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let is_allowed = |c: char| {
        !c.is_control()
            && !matches!(
                c,
                ' ' | '#' | '?' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'
            )
    };
    if is_encoded && path.chars().all(is_allowed) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the path is not URI-encoded, as paths in the log are; encode it: `{}`",
        log_path(path)
    )))
}

/// Looks up the files, those of a folder together where that takes fewer requests.
fn check_exist(files: Vec<ExpectedFile>, cancel: &CancellationToken) -> Result<()> {
    let mut folders: BTreeMap<String, Vec<ExpectedFile>> = BTreeMap::new();
    for file in files {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let key = format!("{}{folder}", file.store.url());
        folders.entry(key).or_default().push(file);
    }
    let mut jobs: Vec<Vec<ExpectedFile>> = Vec::new();
    for files in folders.into_values() {
        let Some(store) = files.first().map(|file| Arc::clone(&file.store)) else {
            continue;
        };
        if !store.is_remote() {
            jobs.extend(files.chunks(LOCAL_FILES).map(<[_]>::to_vec));
        } else if files.len() >= LISTED_FILES && store.can_list() {
            jobs.push(files);
        } else {
            jobs.extend(files.into_iter().map(|file| vec![file]));
        }
    }
    let cancel = cancel.clone();
    map_all(jobs, move |files| {
        cancel.check()?;
        let listed = list_together(&files)?;
        for file in &files {
            let found = match &listed {
                Some(listed) => listed.get(&file.path).copied(),
                None => size_of(file.store.as_ref(), &file.path)?,
            };
            check_size(file, found)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// The sizes of the files of a folder, if it is to be listed.
fn list_together(files: &[ExpectedFile]) -> Result<Option<HashMap<String, u64>>> {
    let Some(first) = files.first() else {
        return Ok(None);
    };
    if !first.store.is_remote() || files.len() < LISTED_FILES {
        return Ok(None);
    }
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let folder = first.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let listing = first.store.list_folder(folder, &|name| {
        if folder.is_empty() {
            paths.contains(name)
        } else {
            paths.contains(format!("{folder}/{name}").as_str())
        }
    })?;
    let size = |object: ObjectMeta| (object.path, object.size);
    Ok(Some(listing.objects.into_iter().map(size).collect()))
}

fn size_of(store: &dyn Store, path: &str) -> Result<Option<u64>> {
    match store.head(path) {
        Ok(object) => Ok(Some(object.size)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn check_size(file: &ExpectedFile, found: Option<u64>) -> Result<()> {
    match found {
        Some(size) if i64::try_from(size).ok() == Some(file.size) => Ok(()),
        Some(size) => Err(Error::invalid(format!(
            "the action says that the file has {} bytes, and it has {size}: readers would not find its footer",
            file.size
        ))
        .at_file(&file.log_path)),
        None => {
            // A plain path with `%` is a valid URI of another file.
            let is_plain = file.log_path.contains('%')
                && matches!(size_of(file.store.as_ref(), &file.log_path), Ok(Some(_)));
            let hint = if is_plain {
                format!(
                    "; a path is URI-encoded, and that of the file with the name `{}` is `{}`",
                    file.log_path,
                    log_path(&file.log_path)
                )
            } else {
                String::new()
            };
            Err(Error::not_found(
                NotFoundKind::DataFile,
                format!("no such file in the table: {}{hint}", file.path),
            )
            .at_file(&file.log_path))
        }
    }
}

/// The removals with all that the log has about the files, deletion vectors among it: without them
/// a removal is of another file.
///
/// # Errors
/// [`Error::Invalid`] for a path that is not that of a live file; errors of reading the log.
pub(super) fn removals_of_live_files(
    destination: &TableOrPath,
    removes: Vec<Remove>,
    cancel: &CancellationToken,
) -> Result<Vec<Remove>> {
    let TableOrPath::Table(snapshot) = destination else {
        return Ok(removes);
    };
    if removes.is_empty() {
        return Ok(removes);
    }
    let canonical = |path: &str| {
        data_path::canonical(path)
            .map(std::borrow::Cow::into_owned)
            .map_err(Error::into_invalid)
    };
    let paths = removes
        .iter()
        .map(|remove| canonical(&remove.path))
        .collect::<Result<Vec<String>>>()?;
    let removed_paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
    let live_adds = matching_live_adds(snapshot, cancel, |batch| {
        (0..batch.len())
            .map(|row| {
                let path = data_path::canonical(batch.path.value(row))?;
                Ok(Some(removed_paths.contains(path.as_ref())))
            })
            .collect::<Result<BooleanArray>>()
    })?;
    let mut live_files: HashMap<String, Add> = HashMap::with_capacity(live_adds.len());
    for add in live_adds {
        live_files.insert(canonical(&add.path)?, add);
    }
    let now = now_ms();
    let complete = |(remove, path): (Remove, &String)| {
        let Some(add) = live_files.get(path) else {
            return Err(Error::invalid(
                "the table does not have this file, so its removal would remove nothing; `files()` has the paths as a RemoveAction takes them",
            )
            .at_version(snapshot.version())
            .at_file(remove.path));
        };
        let removal = add.to_remove(remove.deletion_timestamp.unwrap_or(now), remove.data_change);
        Ok(Remove {
            tags: remove.tags.or(removal.tags.clone()),
            ..removal
        })
    };
    removes.into_iter().zip(&paths).map(complete).collect()
}

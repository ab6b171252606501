//! Liquid clustering: which files of a clustered table are rewritten, and the tags of the new
//! files.
//!
//! The files that one run wrote together are a ZCube: their tags contain its id and clustering
//! columns. New files, and cubes that are still small, are rewritten as new cubes. Large cubes are
//! kept, and so are files that were clustered by other columns or another provider, unless a full
//! clustering is requested. A single cube is not rewritten.
//!
//! Protocol: "Clustered Table". The selection of files, tags and metrics are those of delta-spark.
//! Cost: memory for the actions.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::commit::finish::json_string_list;
use crate::error::Result;
use crate::exec::uuid;
use crate::ops::rewrite::clustering_domain::clustering_columns;
use crate::ops::rewrite::column_path::{quoted_column_path, resolve_column_path};
use crate::ops::rewrite::file_rewrite::split_by_size;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::features;
use crate::protocol::schema::StructType;
use crate::snapshot::Snapshot;

/// The clustering provider.
const PROVIDER: &str = "liquid";
const ID: &str = "ZCUBE_ID";
const COLUMNS: &str = "ZCUBE_ZORDER_BY";
/// The default size in bytes from which a cube is kept.
pub(in crate::ops) const LARGE_CUBE: i64 = 100 << 30;
/// The default size in bytes of the files that become one cube.
pub(in crate::ops) const CUBE: i64 = 150 << 30;

/// The clustering of a table.
#[derive(Debug, Clone)]
pub(in crate::ops) struct LiquidClustering {
    /// The clustering columns, as paths of names; empty if clustering was disabled.
    pub paths: Vec<Vec<String>>,
    /// The columns as in tags.
    pub names: Vec<String>,
}

/// A metric of some files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileMetrics {
    /// Their number.
    #[serde(rename = "numFiles")]
    pub count: usize,
    /// Their size in bytes.
    #[serde(rename = "size")]
    pub bytes: i64,
}

/// Metrics of clustering, as in delta-spark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClusteringMetrics {
    /// Files of cubes with the table's clustering columns; of any cubes in a full clustering.
    #[serde(rename = "inputZCubeFiles")]
    pub input_cube_files: FileMetrics,
    /// The other files.
    #[serde(rename = "inputOtherFiles")]
    pub input_other_files: FileMetrics,
    /// The number of existing cubes.
    #[serde(rename = "inputNumZCubes")]
    pub input_cubes: usize,
    /// Files that are rewritten.
    #[serde(rename = "mergedFiles")]
    pub merged_files: FileMetrics,
    /// The number of new cubes.
    #[serde(rename = "numOutputZCubes")]
    pub output_cubes: usize,
}

/// The files of each new cube.
pub(in crate::ops) struct ClusteringPlan {
    pub cubes: Vec<Vec<Add>>,
    pub metrics: ClusteringMetrics,
}

impl FileMetrics {
    fn add_file(&mut self, add: &Add) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(add.size);
    }
}

impl LiquidClustering {
    /// The clustering of a table; `None` for a table that cannot be clustered.
    pub(in crate::ops) fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        if !features::supported(snapshot.protocol()).contains("clustering") {
            return Ok(None);
        }
        let paths = clustering_columns(snapshot)?;
        let names = paths.iter().map(|path| quoted_column_path(path)).collect();
        Ok(Some(Self { paths, names }))
    }

    /// The files to rewrite. Cubes below `large` bytes are rewritten, and new cubes get `size`
    /// bytes of files; `full` includes files that were clustered by other columns or providers.
    pub(in crate::ops) fn plan(
        &self,
        mut files: Vec<Add>,
        full: bool,
        large: i64,
        size: i64,
    ) -> ClusteringPlan {
        // Files without a cube first, then cube by cube.
        files.sort_by_cached_key(|add| {
            (
                cube_id(add).map(str::to_owned),
                add.modification_time,
                add.path.clone(),
            )
        });
        let mut figures = ClusteringMetrics::default();
        let mut met = None;
        let (mut candidates, mut others): (Vec<Add>, Vec<Add>) = (Vec::new(), Vec::new());
        for add in files {
            let cube = ZCubeInfo::of(&add);
            match cube
                .as_ref()
                .filter(|cube| full || cube.columns == self.names)
            {
                Some(cube) => {
                    if met.as_ref() != Some(&cube.id) {
                        figures.input_cubes += 1;
                        met = Some(cube.id.clone());
                    }
                    figures.input_cube_files.add_file(&add);
                }
                None => figures.input_other_files.add_file(&add),
            }
            let ours = add
                .clustering_provider
                .as_deref()
                .is_none_or(|provider| provider == PROVIDER);
            if ours && cube.is_none_or(|cube| cube.columns == self.names) {
                candidates.push(add);
            } else {
                others.push(add);
            }
        }
        let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
        for add in &candidates {
            if let Some(cube) = ZCubeInfo::of(add) {
                let bytes = sizes.entry(cube.id).or_default();
                *bytes = bytes.saturating_add(live_bytes(add));
            }
        }
        candidates.retain(|add| {
            ZCubeInfo::of(add)
                .is_none_or(|cube| sizes.get(&cube.id).is_none_or(|bytes| *bytes < large))
        });
        if full && !others.is_empty() {
            candidates.extend(others);
        } else {
            let cubes: BTreeSet<Option<String>> = candidates
                .iter()
                .map(|add| ZCubeInfo::of(add).map(|cube| cube.id))
                .collect();
            if cubes.len() == 1 && !cubes.contains(&None) {
                candidates.clear();
            }
        }
        for add in &candidates {
            figures.merged_files.add_file(add);
        }
        let cubes = split_by_size(candidates, size.max(large));
        figures.output_cubes = cubes.len();
        ClusteringPlan {
            cubes,
            metrics: figures,
        }
    }

    /// Adds the tags of a new cube to its files.
    pub(in crate::ops) fn tag(&self, files: &mut [Add]) {
        let id = uuid();
        let columns = json!(self.names).to_string();
        for add in files {
            let tags = add.tags.get_or_insert_default();
            tags.insert(ID.to_owned(), Some(id.clone()));
            tags.insert(COLUMNS.to_owned(), Some(columns.clone()));
            add.clustering_provider = Some(PROVIDER.to_owned());
        }
    }
}

/// Clustering columns of a table with this metadata as in the history, quoted for SQL.
pub(in crate::ops) fn clustering_columns_json(
    metadata: &Metadata,
    columns: &[String],
) -> Result<Value> {
    if columns.is_empty() {
        return Ok(json_string_list(columns));
    }
    let schema = StructType::parse(&metadata.schema_string)?;
    let quoted = columns
        .iter()
        .map(|column| Ok(quoted_column_path(&resolve_column_path(&schema, column)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(json_string_list(&quoted))
}

/// The cube of a file, and its clustering columns.
struct ZCubeInfo {
    id: String,
    columns: Vec<String>,
}

impl ZCubeInfo {
    fn of(add: &Add) -> Option<Self> {
        let columns = add.tags.as_ref()?.get(COLUMNS)?.as_deref()?;
        Some(Self {
            id: cube_id(add)?.to_owned(),
            columns: serde_json::from_str(columns).ok()?,
        })
    }
}

/// Whether the file is clustered.
pub(in crate::ops) fn is_clustered(add: &Add) -> bool {
    add.clustering_provider.is_some() || cube_id(add).is_some()
}

/// Adds the clustering tags of a file to new files with its rows in the same order.
pub(in crate::ops) fn inherit_clustering(old: &Add, files: &mut [Add]) {
    for add in files {
        add.clustering_provider.clone_from(&old.clustering_provider);
        let cube = old
            .tags
            .iter()
            .flatten()
            .filter(|(key, _)| key.starts_with("ZCUBE_"));
        let cube: Vec<(String, Option<String>)> = cube
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !cube.is_empty() {
            add.tags.get_or_insert_default().extend(cube);
        }
    }
}

fn cube_id(add: &Add) -> Option<&str> {
    add.tags.as_ref()?.get(ID)?.as_deref()
}

/// The approximate size in bytes of a file's live rows.
fn live_bytes(add: &Add) -> i64 {
    let deleted = add
        .deletion_vector
        .as_ref()
        .map_or(0, |vector| vector.cardinality);
    match add.num_records() {
        Some(rows) if deleted > 0 && rows > 0 => i64::try_from(
            i128::from(add.size) * i128::from((rows - deleted).max(0)) / i128::from(rows),
        )
        .unwrap_or(add.size),
        _ => add.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dv::DeletionVectorDescriptor;

    fn clustering() -> LiquidClustering {
        LiquidClustering {
            paths: vec![vec!["a".to_owned()], vec!["b".to_owned()]],
            names: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    fn file(path: &str, size: i64) -> Add {
        Add {
            path: path.to_owned(),
            size,
            stats: Some(r#"{"numRecords":100}"#.to_owned()),
            ..Add::default()
        }
    }

    fn of_cube(path: &str, size: i64, id: &str, columns: &str) -> Add {
        let tags = [
            (ID.to_owned(), Some(id.to_owned())),
            (COLUMNS.to_owned(), Some(columns.to_owned())),
        ]
        .into();
        Add {
            tags: Some(tags),
            clustering_provider: Some(PROVIDER.to_owned()),
            ..file(path, size)
        }
    }

    fn foreign(path: &str) -> Add {
        Add {
            clustering_provider: Some("other".to_owned()),
            ..file(path, 1)
        }
    }

    const OURS: &str = r#"["a","b"]"#;

    fn planned(files: Vec<Add>, full: bool) -> (Vec<Vec<String>>, ClusteringMetrics) {
        let plan = clustering().plan(files, full, 100, 150);
        (
            plan.cubes
                .into_iter()
                .map(|cube| cube.into_iter().map(|add| add.path).collect())
                .collect(),
            plan.metrics,
        )
    }

    #[test]
    fn new_files_join_small_cubes_and_large_ones_stay() {
        let files = vec![
            of_cube("l1", 60, "large", OURS),
            of_cube("s", 20, "small", OURS),
            file("n", 10),
            of_cube("l2", 60, "large", OURS),
        ];
        let (cubes, figures) = planned(files, false);
        assert_eq!(cubes, [["n", "s"]]);
        assert_eq!(figures.input_cubes, 2);
        assert_eq!(
            (figures.input_cube_files, figures.input_other_files),
            (
                FileMetrics {
                    count: 3,
                    bytes: 140
                },
                FileMetrics {
                    count: 1,
                    bytes: 10
                }
            )
        );
        assert_eq!(
            (figures.merged_files, figures.output_cubes),
            (
                FileMetrics {
                    count: 2,
                    bytes: 30
                },
                1
            )
        );
    }

    #[test]
    fn a_cube_alone_stays_and_two_small_ones_become_one() {
        let (cubes, figures) = planned(
            vec![of_cube("1", 20, "x", OURS), of_cube("2", 20, "x", OURS)],
            false,
        );
        assert!(cubes.is_empty());
        assert_eq!(
            (
                figures.input_cubes,
                figures.merged_files,
                figures.output_cubes
            ),
            (1, FileMetrics::default(), 0)
        );
        assert_eq!(
            planned(vec![of_cube("1", 20, "x", OURS)], true).0,
            Vec::<Vec<String>>::new()
        );
        assert_eq!(
            planned(
                vec![of_cube("2", 20, "y", OURS), of_cube("1", 20, "x", OURS)],
                false
            )
            .0,
            [["1", "2"]]
        );
        assert_eq!(
            planned(vec![file("1", 20)], false).0,
            [["1"]],
            "a new file is sorted even when it is alone"
        );
        assert_eq!(planned(Vec::new(), true).0, Vec::<Vec<String>>::new());
    }

    #[test]
    fn what_others_made_is_left_alone_unless_all_is_laid_anew() {
        let files = || {
            vec![
                of_cube("o", 500, "other", r#"["b","a"]"#),
                foreign("f"),
                of_cube("c", 200, "large", OURS),
                of_cube("s", 5, "small", OURS),
            ]
        };
        let (cubes, figures) = planned(files(), false);
        assert!(
            cubes.is_empty(),
            "the small cube is the only one of its kind"
        );
        assert_eq!(
            (figures.input_cubes, figures.input_other_files.count),
            (2, 2)
        );
        let (cubes, figures) = planned(files(), true);
        assert_eq!(cubes, [vec!["s", "f"], vec!["o"]]);
        assert_eq!((figures.input_cubes, figures.merged_files.count), (3, 3));
    }

    #[test]
    fn cubes_are_cut_at_their_size() {
        let files = (0..5).map(|n| file(&n.to_string(), 70)).collect();
        assert_eq!(
            planned(files, false).0,
            [vec!["0", "1"], vec!["2", "3"], vec!["4"]]
        );
        assert_eq!(
            planned(vec![file("a", 1000), file("b", 1)], false).0,
            [["a"], ["b"]]
        );
    }

    #[test]
    fn deleted_rows_do_not_make_a_cube_large() {
        let vector = DeletionVectorDescriptor {
            storage_type: "u".to_owned(),
            path_or_inline_dv: "x".to_owned(),
            offset: Some(1),
            size_in_bytes: 1,
            cardinality: 50,
        };
        let worn = Add {
            deletion_vector: Some(vector),
            ..of_cube("w", 150, "x", OURS)
        };
        assert_eq!(planned(vec![worn, file("n", 1)], false).0, [["n"], ["w"]]);
    }

    #[test]
    fn files_of_a_cube_say_so() {
        let mut files = vec![file("a", 1), file("b", 1)];
        clustering().tag(&mut files);
        let cubes: Vec<ZCubeInfo> = files.iter().filter_map(ZCubeInfo::of).collect();
        assert_eq!(cubes.len(), 2);
        assert!(cubes.iter().all(|cube| cube.id == cubes[0].id
            && cube.id.len() == 36
            && cube.columns == ["a", "b"]));
        assert!(
            files
                .iter()
                .all(|add| add.clustering_provider.as_deref() == Some(PROVIDER))
        );
    }
}

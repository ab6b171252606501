//! The row groups of a data file that a scan reads, without reading them: footer, bloom filters and
//! page index -> counts by what excludes them.

use std::ops::AddAssign;
use std::sync::Arc;

use serde::Serialize;

use super::data_file::{FileSpec, OpenDataFile, SelectedRowGroup, missing_data_file};
use crate::error::Result;
use crate::pq::decoder_errors::catch_decoder_panic;
use crate::pq::input::column_chunks::chunk_range;
use crate::pq::input::footer::FooterCache;

/// Row groups of data files, and what excludes them from a scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RowGroupPlan {
    /// Number of row groups.
    pub row_groups: u64,
    /// Number of row groups of which deletion vectors delete all rows.
    pub excluded_by_deletion_vector: u64,
    /// Number of row groups that their statistics exclude.
    pub excluded_by_statistics: u64,
    /// Number of further row groups that their bloom filters exclude.
    pub excluded_by_bloom_filter: u64,
    /// Number of further row groups of which the page index excludes all pages.
    pub excluded_by_page_index: u64,
    /// Number of row groups that are read, or some of their pages.
    pub row_groups_read: u64,
    /// Number of stored rows.
    pub rows: u64,
    /// Number of rows in the pages that are read.
    pub rows_read: u64,
    /// Compressed bytes of the columns that the scan needs.
    pub bytes: u64,
    /// Bytes of these in the pages that are read.
    pub bytes_read: u64,
}

impl AddAssign for RowGroupPlan {
    fn add_assign(&mut self, other: Self) {
        self.row_groups += other.row_groups;
        self.excluded_by_deletion_vector += other.excluded_by_deletion_vector;
        self.excluded_by_statistics += other.excluded_by_statistics;
        self.excluded_by_bloom_filter += other.excluded_by_bloom_filter;
        self.excluded_by_page_index += other.excluded_by_page_index;
        self.row_groups_read += other.row_groups_read;
        self.rows += other.rows;
        self.rows_read += other.rows_read;
        self.bytes += other.bytes;
        self.bytes_read += other.bytes_read;
    }
}

/// The row groups that [`super::data_file::read`] would read of a file, all of its byte range.
///
/// # Errors
/// As `read`, for the footer and the indexes.
pub fn plan_row_groups(spec: &FileSpec, footers: &Arc<FooterCache>) -> Result<RowGroupPlan> {
    let path = spec.file.path.clone();
    catch_decoder_panic(&path, || {
        let open = OpenDataFile::new(spec, footers)?;
        let leaves = &open.all_columns.projection.leaves;
        let groups = open.footer.metadata.row_groups();
        let mut plan = RowGroupPlan {
            row_groups: groups.iter().filter(|group| group.num_rows() > 0).count() as u64,
            excluded_by_statistics: open.excluded.by_statistics,
            excluded_by_bloom_filter: open.excluded.by_bloom_filters,
            excluded_by_page_index: open.excluded.by_page_index,
            row_groups_read: open.groups.len() as u64,
            rows: open.footer.num_rows(),
            ..RowGroupPlan::default()
        };
        plan.excluded_by_deletion_vector = plan.row_groups
            - plan.row_groups_read
            - plan.excluded_by_statistics
            - plan.excluded_by_bloom_filter
            - plan.excluded_by_page_index;
        for group in groups {
            for leaf in leaves {
                if let Some(column) = group.columns().get(*leaf) {
                    let chunk = chunk_range(column, open.footer.size)?;
                    plan.bytes += chunk.end - chunk.start;
                }
            }
        }
        for group in &open.groups {
            plan.rows_read += group.ranges.iter().map(|r| r.end - r.start).sum::<u64>();
            plan.bytes_read += bytes_read(&open, group, leaves)?;
        }
        Ok(plan)
    })
    .map_err(missing_data_file)
}

/// The bytes of a row group's chunks, or of their selected pages.
fn bytes_read(open: &OpenDataFile, group: &SelectedRowGroup, leaves: &[usize]) -> Result<u64> {
    let mut bytes = 0;
    for leaf in leaves {
        let Some(column) = open
            .footer
            .metadata
            .row_groups()
            .get(group.index)
            .and_then(|metadata| metadata.columns().get(*leaf))
        else {
            continue;
        };
        let chunk = chunk_range(column, open.footer.size)?;
        let selected = group
            .page_selection()
            .and_then(|(rows, pages)| pages.ranges(*leaf, &chunk, rows));
        bytes += match selected {
            Some(ranges) => ranges.iter().map(|range| range.end - range.start).sum(),
            None => chunk.end - chunk.start,
        };
    }
    Ok(bytes)
}

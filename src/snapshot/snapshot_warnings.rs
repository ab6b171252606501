//! The warnings of a snapshot, each once.

/// Warnings about a table that could be read nevertheless; each one is reported once.
#[derive(Debug, Default)]
pub(super) struct SnapshotWarnings {
    pub(super) all: Vec<String>,
    pub(super) reported: usize,
}

impl SnapshotWarnings {
    pub(super) fn add(&mut self, text: String) {
        if !self.all.contains(&text) {
            self.all.push(text);
        }
    }
}

//! From bytes of a file to checked, decompressed pages.

pub(super) mod bounds_check;
pub(super) mod calendar_rebase;
pub(super) mod column_chunks;
pub(super) mod decompress;
pub(crate) mod footer;
pub(super) mod header_check;
pub(super) mod page_check;
pub(super) mod page_checksum;

//! What decoders and encoders share: the layout of packed values, and statistics of a column.

pub(super) mod bit_unpack;
pub(super) mod column_statistics;
pub(super) mod rle;

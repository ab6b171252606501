//! String views -> offsets and bytes, for consumers that need the plain layout.
//!
//! Values are copied in blocks of a fixed size. A block may extend into the next value's place,
//! which that value then overwrites: a copy of known length takes an instruction or two, one of
//! unknown length is a call.

use std::sync::Arc;

use arrow_array::types::{
    BinaryViewType, ByteViewType, GenericBinaryType, GenericStringType, StringViewType,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

/// The longest value that is stored inline in its view.
const INLINE: usize = 12;
/// Longer values up to this length are copied as one block.
const BLOCK: usize = 64;

/// The array of views with offsets; `None` for other arrays, other types, and more bytes than
/// offsets can address.
pub(in crate::pq) fn to_offset_layout(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let any = array.as_any();
    match to {
        DataType::Utf8 => {
            let views: &GenericByteViewArray<StringViewType> = any.downcast_ref()?;
            let (offsets, bytes) = copy_values(views)?;
            // SAFETY: the offsets ascend from 0 to the end of the bytes, which are those of whole
            // strings.
            let strings = unsafe {
                GenericByteArray::<GenericStringType<i32>>::new_unchecked(
                    offsets,
                    bytes,
                    views.nulls().cloned(),
                )
            };
            Some(Arc::new(strings))
        }
        DataType::Binary => {
            let views: &GenericByteViewArray<BinaryViewType> = any.downcast_ref()?;
            let (offsets, bytes) = copy_values(views)?;
            Some(Arc::new(
                GenericByteArray::<GenericBinaryType<i32>>::try_new(
                    offsets,
                    bytes,
                    views.nulls().cloned(),
                )
                .ok()?,
            ))
        }
        _ => None,
    }
}

fn copy_values<T: ByteViewType + ?Sized>(
    array: &GenericByteViewArray<T>,
) -> Option<(OffsetBuffer<i32>, Buffer)> {
    let (views, buffers) = (array.views(), array.data_buffers());
    let mut offsets: Vec<i32> = Vec::with_capacity(views.len() + 1);
    offsets.push(0);
    let mut end = 0_u64;
    // Saturated offsets are not used: then there are too many bytes.
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => offsets.extend(views.iter().map(|view| {
            end += u64::from(*view as u32);
            i32::try_from(end).unwrap_or(i32::MAX)
        })),
        Some(nulls) => offsets.extend(views.iter().zip(nulls).map(|(view, valid)| {
            end += if valid { u64::from(*view as u32) } else { 0 };
            i32::try_from(end).unwrap_or(i32::MAX)
        })),
    }
    let total = usize::try_from(i32::try_from(end).ok()?).ok()?;
    let mut out = vec![0; total + BLOCK];
    for (view, ends) in views.iter().zip(offsets.windows(2)) {
        let &[at, end] = ends else { return None };
        let (at, length) = (usize::try_from(at).ok()?, usize::try_from(end - at).ok()?);
        if length <= INLINE {
            out.get_mut(at..)?
                .first_chunk_mut::<16>()?
                .copy_from_slice(&(view >> 32).to_le_bytes());
            continue;
        }
        let from = buffers
            .get((view >> 64) as u32 as usize)?
            .get((view >> 96) as usize..)?;
        match (
            out.get_mut(at..)?.first_chunk_mut::<BLOCK>(),
            from.first_chunk::<BLOCK>(),
        ) {
            (Some(to), Some(from)) if length <= BLOCK => *to = *from,
            _ => out
                .get_mut(at..at + length)?
                .copy_from_slice(from.get(..length)?),
        }
    }
    out.truncate(total);
    Some((
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        Buffer::from_vec(out),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryViewArray, StringViewArray};

    /// Values of all lengths around the two limits, ordered so that each precedes a shorter and a
    /// longer one.
    fn values() -> Vec<Option<String>> {
        let lengths = [0, 1, 11, 12, 13, 16, 63, 64, 65, 200, 12, 64, 0, 70, 3];
        let mut out: Vec<Option<String>> = lengths
            .iter()
            .map(|n| Some("äbcdefgh".chars().cycle().take(*n).collect()))
            .collect();
        out.insert(3, None);
        out.push(None);
        out
    }

    #[test]
    fn values_are_those_of_the_views() {
        let values = values();
        let views = StringViewArray::from_iter(values.iter().map(Option::as_deref));
        for start in 0..values.len() {
            for length in [0, 1, values.len() - start] {
                let part: ArrayRef = Arc::new(views.slice(start, length));
                let ours = to_offset_layout(&part, &DataType::Utf8).unwrap();
                assert_eq!(
                    &ours,
                    &arrow_cast::cast(&part, &DataType::Utf8).unwrap(),
                    "{start} {length}"
                );
                ours.to_data().validate_full().unwrap();
            }
        }
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter(
            values
                .iter()
                .map(|value| value.as_ref().map(String::as_bytes)),
        ));
        assert_eq!(
            &to_offset_layout(&bytes, &DataType::Binary).unwrap(),
            &arrow_cast::cast(&bytes, &DataType::Binary).unwrap()
        );
    }

    #[test]
    fn nothing_else_is_taken() {
        let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(["x"]));
        assert!(to_offset_layout(&views, &DataType::Binary).is_none());
        assert!(to_offset_layout(&views, &DataType::LargeUtf8).is_none());
        let strings: ArrayRef = Arc::new(arrow_array::StringArray::from_iter_values(["x"]));
        assert!(to_offset_layout(&strings, &DataType::Utf8).is_none());
    }
}

//! The fields of a struct, found by name in constant time.
//!
//! Tables of features or sensors have tens of thousands of columns, and most operations look up
//! each of them by name. The index is built when a name is first looked up, and is dropped when the
//! fields change.

use std::ops::{Deref, DerefMut};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

use crate::process::RaceOnce;
use crate::protocol::schema::StructField;

/// Up to this many fields a search from the first to the last is as fast.
const SEARCHED: usize = 8;

/// Fields in order.
#[derive(Default)]
pub struct FieldList {
    fields: Vec<StructField>,
    /// Positions by name.
    by_name: RaceOnce<HashTable<u32>>,
    /// Positions by name in lower case.
    by_lower_name: RaceOnce<FxHashMap<String, usize>>,
}

impl FieldList {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            fields: Vec::new(),
            by_name: RaceOnce::new(),
            by_lower_name: RaceOnce::new(),
        }
    }

    /// The position of the first field of exactly this name.
    ///
    /// ```
    /// use deltafast::protocol::schema::{DataType, FieldList, StructField};
    ///
    /// let fields: FieldList = (0..100)
    ///     .map(|n| StructField::new(format!("c{n}"), DataType::Long, true))
    ///     .collect();
    /// assert_eq!(fields.position("c70"), Some(70));
    /// assert_eq!(fields.position("C70"), None);
    /// assert_eq!(fields.position_ignoring_case("C70"), Some(70));
    /// ```
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        if self.fields.len() <= SEARCHED {
            return self.fields.iter().position(|field| field.name == name);
        }
        let name_at = |n: u32| self.fields.get(n as usize).map(|field| field.name.as_str());
        let hash = |name: &str| FxBuildHasher.hash_one(name);
        let index = self.by_name.get_or_make(|| {
            let mut index = HashTable::with_capacity(self.fields.len());
            for (n, field) in (0..).zip(&self.fields) {
                index
                    .entry(
                        hash(&field.name),
                        |other| name_at(*other) == Some(&field.name),
                        |other| name_at(*other).map_or(0, hash),
                    )
                    .or_insert(n);
            }
            index
        });
        index
            .find(hash(name), |n| name_at(*n) == Some(name))
            .map(|n| *n as usize)
    }

    /// The position of the field of this name; exact case first, then without case.
    #[must_use]
    pub fn position_ignoring_case(&self, name: &str) -> Option<usize> {
        self.position(name).or_else(|| {
            let lower = name.to_lowercase();
            if self.fields.len() <= SEARCHED {
                return self
                    .fields
                    .iter()
                    .position(|field| field.name.to_lowercase() == lower);
            }
            let index = self.by_lower_name.get_or_make(|| {
                let mut index = FxHashMap::default();
                for (n, field) in self.fields.iter().enumerate() {
                    index.entry(field.name.to_lowercase()).or_insert(n);
                }
                index
            });
            index.get(&lower).copied()
        })
    }

    /// The field of exactly this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&StructField> {
        self.fields.get(self.position(name)?)
    }

    /// Appends a field.
    pub fn push(&mut self, field: StructField) {
        self.changing().push(field);
    }

    /// The fields, whose names may change: the index is dropped.
    fn changing(&mut self) -> &mut Vec<StructField> {
        self.by_name = RaceOnce::new();
        self.by_lower_name = RaceOnce::new();
        &mut self.fields
    }
}

impl Deref for FieldList {
    type Target = [StructField];

    fn deref(&self) -> &[StructField] {
        &self.fields
    }
}

impl DerefMut for FieldList {
    fn deref_mut(&mut self) -> &mut [StructField] {
        self.changing()
    }
}

impl Clone for FieldList {
    fn clone(&self) -> Self {
        self.fields.clone().into()
    }
}

impl PartialEq for FieldList {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl std::fmt::Debug for FieldList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fields.fmt(f)
    }
}

impl From<Vec<StructField>> for FieldList {
    fn from(fields: Vec<StructField>) -> Self {
        Self {
            fields,
            ..Self::default()
        }
    }
}

impl From<FieldList> for Vec<StructField> {
    fn from(list: FieldList) -> Self {
        list.fields
    }
}

impl FromIterator<StructField> for FieldList {
    fn from_iter<I: IntoIterator<Item = StructField>>(fields: I) -> Self {
        Vec::from_iter(fields).into()
    }
}

impl Extend<StructField> for FieldList {
    fn extend<I: IntoIterator<Item = StructField>>(&mut self, fields: I) {
        self.changing().extend(fields);
    }
}

impl IntoIterator for FieldList {
    type Item = StructField;
    type IntoIter = std::vec::IntoIter<StructField>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldList {
    type Item = &'a StructField;
    type IntoIter = std::slice::Iter<'a, StructField>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}

impl<'a> IntoIterator for &'a mut FieldList {
    type Item = &'a mut StructField;
    type IntoIter = std::slice::IterMut<'a, StructField>;

    fn into_iter(self) -> Self::IntoIter {
        self.changing().iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::schema::DataType;

    fn list(names: &[String]) -> FieldList {
        names
            .iter()
            .map(|name| StructField::new(name.clone(), DataType::Long, true))
            .collect()
    }

    proptest! {
        #[test]
        fn names_are_found_as_by_a_search(
            names in prop::collection::vec("[aAbBéÉ]{0,3}", 0..40),
            wanted in "[aAbBéÉ]{0,3}",
        ) {
            let fields = list(&names);
            let exact = names.iter().position(|name| *name == wanted);
            let lower = names
                .iter()
                .position(|name| name.to_lowercase() == wanted.to_lowercase());
            prop_assert_eq!(fields.position(&wanted), exact);
            prop_assert_eq!(fields.position_ignoring_case(&wanted), exact.or(lower));
            prop_assert_eq!(
                fields.named(&wanted).map(|field| &field.name),
                exact.and_then(|n| names.get(n))
            );
        }
    }

    #[test]
    fn names_that_change_are_found() {
        let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let mut fields = list(&names);
        assert_eq!(fields.position("c3"), Some(3));
        assert_eq!(fields.position_ignoring_case("X"), None);
        for field in &mut fields {
            field.name = format!("x{}", field.name);
        }
        assert_eq!(fields.position("c3"), None);
        assert_eq!(fields.position_ignoring_case("XC3"), Some(3));
        fields.push(StructField::new("new", DataType::Long, true));
        assert_eq!(fields.position("new"), Some(20));
        fields[20].name = "newer".to_owned();
        assert_eq!(
            (fields.position("new"), fields.position("newer")),
            (None, Some(20))
        );
    }
}

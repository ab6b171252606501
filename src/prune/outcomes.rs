//! Three-valued logic over sets of files: which of true, false and null a predicate may give.

use arrow_buffer::BooleanBuffer;

/// The outcomes that a predicate may have for the rows of each file.
#[derive(Debug, Clone)]
pub(super) struct PredicateOutcomes {
    pub(super) may_be_true: BooleanBuffer,
    pub(super) may_be_false: BooleanBuffer,
    pub(super) may_be_null: BooleanBuffer,
}

impl PredicateOutcomes {
    pub(super) fn unknown(rows: usize) -> Self {
        let all = BooleanBuffer::new_set(rows);
        Self {
            may_be_true: all.clone(),
            may_be_false: all.clone(),
            may_be_null: all,
        }
    }

    pub(super) fn not(self) -> Self {
        Self {
            may_be_true: self.may_be_false,
            may_be_false: self.may_be_true,
            may_be_null: self.may_be_null,
        }
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        let not_false = |o: &Self| &o.may_be_true | &o.may_be_null;
        Self {
            may_be_true: &self.may_be_true & &other.may_be_true,
            may_be_false: &self.may_be_false | &other.may_be_false,
            may_be_null: &(&self.may_be_null & &not_false(other))
                | &(&other.may_be_null & &not_false(self)),
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(&other.not()).not()
    }
}

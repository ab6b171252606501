//! One object of a store as a store.

use super::store_object::Store;
use crate::error::Result;
use std::fmt::Debug;
use std::sync::Arc;

/// One object of a store.
#[derive(Debug, Clone)]
pub struct StoreObject {
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its path in the store.
    pub path: String,
    /// Its size in bytes, where the caller knows it.
    pub size: Option<u64>,
}

impl StoreObject {
    /// Its size, requested from the store if unknown.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Storage`].
    pub fn size(&self) -> Result<u64> {
        match self.size {
            Some(size) => Ok(size),
            None => self.store.head(&self.path).map(|meta| meta.size),
        }
    }

    /// Its URL, for messages.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.store.url(), self.path)
    }
}

//! Names of models in the answers of a server.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reply::Reply;

/// Maximum number of names that are kept.
const MAX_NAMES: usize = 8;
/// Maximum number of characters of a name that are kept.
const MAX_CHARACTERS: usize = 200;

/// The names in answers that differ from the name in the handshake. A server may change its model during a
/// run.
#[derive(Debug, Default)]
pub(in crate::judging::served) struct OtherModelNames {
    names: Mutex<BTreeSet<String>>,
}

impl OtherModelNames {
    /// Adds the name in an answer if it is not `expected`. An answer without a name says nothing.
    pub(in crate::judging::served) fn add(&self, expected: &str, reply: &Reply) {
        let Some(name) = reply.model.as_deref().filter(|name| *name != expected) else {
            return;
        };
        let mut names = self.lock();
        if names.len() < MAX_NAMES {
            names.insert(name.chars().take(MAX_CHARACTERS).collect());
        }
    }

    /// Returns the names.
    pub(in crate::judging::served) fn names(&self) -> BTreeSet<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

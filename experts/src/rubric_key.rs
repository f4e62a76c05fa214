//! Keys of aspects and criteria: short names that are stored once and compared by content.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;

/// Maximum length of a key, in bytes.
const MAX_LENGTH: usize = 48;
/// Maximum number of different keys of a store. Records name only the criteria of their rubric, so more
/// keys are a damaged or hostile file.
const MAX_KEYS: usize = 4096;

/// The keys of rubrics and records that are not constants of the program. They stay in memory until the
/// program ends.
pub(crate) struct KeyStore(Mutex<BTreeSet<&'static str>>);

impl KeyStore {
    /// Creates an empty store.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    fn keys(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stored copy of a key; stores it if it is new.
    ///
    /// # Errors
    /// If the text is no key, or there are too many keys.
    pub(crate) fn store(&self, text: &str) -> Result<&'static str, Error> {
        if !is_key(text) {
            let shown: String = text.chars().take(MAX_LENGTH).collect();
            return Err(Error::Rubric(format!(
                "`{}` is no key, expected at most {MAX_LENGTH} lower-case letters, digits and \
                 underscores, a letter first",
                shown.escape_debug()
            )));
        }
        let mut keys = self.keys();
        if let Some(known) = keys.get(text) {
            return Ok(known);
        }
        if keys.len() >= MAX_KEYS {
            return Err(Error::Rubric(format!("more than {MAX_KEYS} different keys")));
        }
        let key: &'static str = Box::leak(text.to_owned().into_boxed_str());
        keys.insert(key);
        Ok(key)
    }

    /// Returns the stored copy of a key; `None` if it is not stored.
    pub(crate) fn find(&self, text: &str) -> Option<&'static str> {
        self.keys().get(text).copied()
    }

    /// Returns all stored keys in alphabetical order.
    pub(crate) fn all(&self) -> Vec<&'static str> {
        self.keys().iter().copied().collect()
    }
}

fn is_key(text: &str) -> bool {
    let is_letter_or_digit = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(is_letter_or_digit)
        && text.len() <= MAX_LENGTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_stored_once() {
        let store = KeyStore::new();
        let first = store.store("a_key").unwrap();
        let second = store.store(&String::from("a_key")).unwrap();
        assert!(std::ptr::eq(first, second));
        assert_eq!((store.find("a_key"), store.find("b")), (Some("a_key"), None));
        assert_eq!(store.all(), ["a_key"]);
    }

    #[test]
    fn other_texts_are_rejected() {
        let store = KeyStore::new();
        for text in ["", "Tone", "1st", "a-b", "ä", "a b", &"x".repeat(MAX_LENGTH + 1)] {
            assert!(store.store(text).is_err(), "{text}");
        }
    }
}

//! Keys of aspects and criteria: short names that are stored once, in the order in which they were read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;

/// Maximum length of a key, in bytes.
const MAX_LENGTH: usize = 48;
/// Maximum number of different keys of a store. Records name only the criteria of their rubric, so more
/// keys are a damaged or hostile file.
const MAX_KEYS: usize = 4096;

/// Position of the first key of a store. The constants of the program come before it.
const FIRST_STORED: u32 = 1 << 16;

/// A key. Keys are ordered by position, not by text: a rubric lists its keys in an order that means
/// something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RubricKey {
    /// Position among all keys of its type. Equal texts have equal positions.
    position: u32,
    text: &'static str,
}

impl RubricKey {
    /// Creates a key that is a constant of the program.
    pub(crate) const fn constant(position: u32, text: &'static str) -> Self {
        Self { position, text }
    }

    /// Returns the text.
    pub(crate) const fn text(self) -> &'static str {
        self.text
    }
}

/// The keys of rubrics and records that are not constants of the program, with their positions. They
/// stay in memory until the program ends.
pub(crate) struct KeyStore(Mutex<BTreeMap<&'static str, u32>>);

impl KeyStore {
    /// Creates an empty store.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<&'static str, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interns a key: returns its stored copy, and appends a new key.
    ///
    /// # Errors
    /// If the text is no key, or there are too many keys.
    pub(crate) fn store(&self, text: &str) -> Result<RubricKey, Error> {
        if !is_key(text) {
            let shown: String = text.chars().take(MAX_LENGTH).collect();
            return Err(Error::Rubric(format!(
                "`{}` is no key, expected at most {MAX_LENGTH} lower-case letters, digits and \
                 underscores, a letter first",
                shown.escape_debug()
            )));
        }
        let mut keys = self.keys();
        if let Some((text, position)) = keys.get_key_value(text) {
            return Ok(RubricKey { position: *position, text });
        }
        let stored = u32::try_from(keys.len()).ok().filter(|_| keys.len() < MAX_KEYS);
        let Some(stored) = stored else {
            return Err(Error::Rubric(format!("more than {MAX_KEYS} different keys")));
        };
        let key = RubricKey {
            position: FIRST_STORED + stored,
            text: Box::leak(text.to_owned().into_boxed_str()),
        };
        keys.insert(key.text, key.position);
        Ok(key)
    }

    /// Returns the stored copy of a key; `None` if it is not stored.
    pub(crate) fn find(&self, text: &str) -> Option<RubricKey> {
        let keys = self.keys();
        keys.get_key_value(text).map(|(text, position)| RubricKey { position: *position, text })
    }

    /// Returns all stored keys in their order.
    pub(crate) fn all(&self) -> Vec<RubricKey> {
        let keys = self.keys();
        let stored = keys.iter().map(|(text, position)| RubricKey { position: *position, text });
        let mut all: Vec<RubricKey> = stored.collect();
        all.sort_unstable();
        all
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
        assert!(std::ptr::eq(first.text(), second.text()));
        assert!(store.find("a_key") == Some(first) && store.find("b").is_none());
    }

    #[test]
    fn keys_have_the_order_in_which_they_were_stored() {
        let store = KeyStore::new();
        for text in ["safety", "brevity", "safety", "harm"] {
            store.store(text).unwrap();
        }
        let texts: Vec<&str> = store.all().into_iter().map(RubricKey::text).collect();
        assert_eq!(texts, ["safety", "brevity", "harm"]);
        assert!(RubricKey::constant(9, "z") < store.store("a").unwrap());
    }

    #[test]
    fn other_texts_are_rejected() {
        let store = KeyStore::new();
        for text in ["", "Tone", "1st", "a-b", "ä", "a b", &"x".repeat(MAX_LENGTH + 1)] {
            assert!(store.store(text).is_err(), "{text}");
        }
    }
}

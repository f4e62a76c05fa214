//! Limit on the memory for keys and values.

use super::token_bytes::TokenBytes;

/// The part of the limit for prompt stages that are kept for later texts is one of this many.
const PREFIX_SHARE: u64 = 4;
/// Tokens of the prompt stages that are kept without a limit.
const UNLIMITED_PREFIX_TOKENS: u64 = 4096;

/// A limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::generate) struct MemoryLimit(pub(in crate::generate) u64);

impl MemoryLimit {
    /// No limit.
    pub(in crate::generate) const NONE: Self = Self(u64::MAX);

    /// Returns the bytes that the tasks in progress may take.
    pub(super) fn for_tasks(self) -> u64 {
        self.0 - self.0 / PREFIX_SHARE
    }

    /// Returns the bytes of the prompt stages that are kept for later texts.
    pub(in crate::generate) fn for_prefixes(self, token: TokenBytes) -> u64 {
        if self == Self::NONE {
            return UNLIMITED_PREFIX_TOKENS * token.all();
        }
        self.0 / PREFIX_SHARE
    }
}

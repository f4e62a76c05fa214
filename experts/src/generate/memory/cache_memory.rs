//! Limit on the memory of KV caches.

use super::token_bytes::TokenBytes;

/// The part of the limit for prompt stages that are kept for later texts is one of this many.
const PREFIX_SHARE: u64 = 4;
/// Tokens of prompt stages to keep if there is no limit.
const UNLIMITED_PREFIX_TOKENS: u64 = 4096;

/// The limit, and the size of one token in the KV caches.
#[derive(Clone, Copy, Debug)]
pub(in crate::generate) struct CacheMemory {
    /// Limit in bytes.
    pub(in crate::generate) limit: u64,
    /// Size of a token.
    pub(in crate::generate) token: TokenBytes,
}

impl CacheMemory {
    /// Creates a limit that is never reached.
    pub(in crate::generate) fn unlimited(token: TokenBytes) -> Self {
        Self { limit: u64::MAX, token }
    }

    /// Returns the bytes that the tasks in progress may take.
    pub(super) fn for_tasks(self) -> u64 {
        self.limit - self.limit / PREFIX_SHARE
    }

    /// Returns the bytes of the prompt stages that are kept for later texts.
    pub(in crate::generate) fn for_prefixes(self) -> u64 {
        if self.limit == u64::MAX {
            return UNLIMITED_PREFIX_TOKENS * self.token.all();
        }
        self.limit / PREFIX_SHARE
    }
}

//! Counts of requests and tokens.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::judging::judge::server_usage::ServerUsage;
use crate::judging::served::exchange::reply::Reply;

/// Counts the requests that a panel sent, and their tokens.
#[derive(Debug, Default)]
pub(in crate::judging::served) struct UsageCounter {
    requests: AtomicU64,
    prompt_tokens: AtomicU64,
    written_tokens: AtomicU64,
    /// Requests whose answers state no tokens.
    uncounted: AtomicU64,
}

impl UsageCounter {
    /// Adds an answered request.
    pub(in crate::judging::served) fn add(&self, reply: &Reply) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let [prompt, written] =
            [reply.prompt_tokens, reply.written_tokens].map(Option::unwrap_or_default);
        self.prompt_tokens.fetch_add(prompt, Ordering::Relaxed);
        self.written_tokens.fetch_add(written, Ordering::Relaxed);
        self.uncounted.fetch_add(u64::from(!reply.states_tokens()), Ordering::Relaxed);
    }

    /// Adds the requests of earlier commands.
    pub(in crate::judging::served) fn add_earlier(&self, earlier: ServerUsage) {
        self.requests.fetch_add(earlier.requests, Ordering::Relaxed);
        self.prompt_tokens.fetch_add(earlier.prompt_tokens, Ordering::Relaxed);
        self.written_tokens.fetch_add(earlier.written_tokens, Ordering::Relaxed);
        self.uncounted.fetch_add(earlier.uncounted, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(in crate::judging::served) fn usage(&self) -> ServerUsage {
        ServerUsage {
            requests: self.requests.load(Ordering::Relaxed),
            prompt_tokens: self.prompt_tokens.load(Ordering::Relaxed),
            written_tokens: self.written_tokens.load(Ordering::Relaxed),
            uncounted: self.uncounted.load(Ordering::Relaxed),
        }
    }
}

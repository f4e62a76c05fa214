//! Requests to models, their tokens and their cost.

use serde::{Deserialize, Serialize};

/// Requests that a server answered, or evaluations that this process computed, and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// Number of requests or evaluations.
    pub requests: u64,
    /// Tokens of the prompts, image tokens included; 0 if the server does not count.
    pub prompt_tokens: u64,
    /// Tokens that the models wrote.
    pub written_tokens: u64,
    /// Requests whose tokens the server did not state, so that their cost is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Prices of a server, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrices {
    /// Price of a million tokens of prompts.
    pub prompt: f64,
    /// Price of a million written tokens.
    pub written: f64,
}

/// Requests of earlier commands that a run resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierUsage {
    /// The requests and their tokens.
    pub usage: ServerUsage,
    /// Number of jobs that these commands finished.
    pub jobs: u64,
}

/// Formats a cost with at least two digits that are not zero.
pub fn format_cost(cost: f64) -> String {
    match cost {
        cost if cost >= 1.0 || cost == 0.0 => format!("{cost:.2}"),
        cost if cost >= 0.01 => format!("{cost:.4}"),
        cost => format!("{cost:.1e}"),
    }
}

impl std::iter::Sum for ServerUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, usage| Self {
            requests: sum.requests.saturating_add(usage.requests),
            prompt_tokens: sum.prompt_tokens.saturating_add(usage.prompt_tokens),
            written_tokens: sum.written_tokens.saturating_add(usage.written_tokens),
            uncounted: sum.uncounted.saturating_add(usage.uncounted),
        })
    }
}

impl ServerUsage {
    /// Returns the difference from an earlier count, multiplied by a factor.
    #[must_use]
    pub fn scaled_since(self, earlier: Self, factor: f64) -> Self {
        let scale =
            |now: u64, earlier: u64| (now.saturating_sub(earlier) as f64 * factor).round() as u64;
        Self {
            requests: scale(self.requests, earlier.requests),
            prompt_tokens: scale(self.prompt_tokens, earlier.prompt_tokens),
            written_tokens: scale(self.written_tokens, earlier.written_tokens),
            uncounted: scale(self.uncounted, earlier.uncounted),
        }
    }

    /// Returns the cost of these tokens.
    pub fn cost(&self, prices: TokenPrices) -> f64 {
        (self.prompt_tokens as f64 * prices.prompt + self.written_tokens as f64 * prices.written)
            / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_costs_are_not_zero() {
        let costs = [0.0, 12.345, 0.0456, 0.000_012_3].map(format_cost);
        assert_eq!(costs, ["0.00", "12.35", "0.0456", "1.2e-5"]);
    }
}

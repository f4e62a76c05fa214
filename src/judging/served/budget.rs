//! The most that the requests of a run may cost.

use anyhow::{Result, bail};

use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage, TokenPrices, format_cost};
use crate::support::text::format_count;

/// The most that a run may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The prices of the server.
    pub prices: TokenPrices,
    /// The largest cost.
    pub max_cost: f64,
}

/// Jobs of a run, and what their requests used so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending {
    /// The requests and tokens, also those of earlier commands and of jobs in progress.
    pub usage: ServerUsage,
    /// The part of earlier commands.
    pub earlier: EarlierUsage,
    /// Number of jobs that this command finished.
    pub finished: usize,
    /// Number of jobs in progress.
    pub in_progress: usize,
}

/// Returns the error for a limit on the cost of a server that states no tokens.
pub(super) fn unknown_cost(model: &str, url: &str) -> String {
    format!(
        "--max-cost: {model} at {url} states no tokens in its answers, so that their cost is unknown\n\
         hint: omit --max-cost, or use a server that states `usage`"
    )
}

impl Budget {
    /// Returns how many jobs may be in progress: the first one shows what a job costs.
    pub(super) fn jobs(self, spending: Spending) -> usize {
        let per_job = self.cost_per_job(spending);
        if spending.finished == 0 {
            1
        } else if per_job > 0.0 {
            (((self.max_cost - spending.usage.cost(self.prices)) / per_job) as usize).max(1)
        } else {
            usize::MAX
        }
    }

    /// Checks that another job may start.
    ///
    /// # Errors
    ///
    /// The limit is reached, one more job would exceed it, or the cost is unknown.
    pub(super) fn check(self, spending: Spending) -> Result<()> {
        if spending.usage.uncounted > 0 {
            bail!(
                "--max-cost: the server states no tokens for {}, so that their cost is unknown\n\
                 hint: omit --max-cost, or judge into another --out with a server that states `usage` in its answers",
                format_count(spending.usage.uncounted, "request")
            );
        }
        let Self { prices, max_cost } = self;
        let cost = spending.usage.cost(prices);
        let next_fits = spending.in_progress > 0 || self.cost_per_job(spending) <= max_cost - cost;
        if cost < max_cost && next_fits {
            return Ok(());
        }
        let cost = format_cost(cost);
        bail!(
            "--max-cost {max_cost}: the requests of this run cost {cost}, and another case would cost \
             more than the rest\n\
             hint: run the same command with a larger --max-cost; `acem3 judge` resumes"
        )
    }

    /// Returns the mean cost of a finished job, of this command or of earlier ones, whichever is larger; 0
    /// if none has finished. It contains the cost of jobs in progress, so it is not too small.
    fn cost_per_job(self, spending: Spending) -> f64 {
        let EarlierUsage { usage: earlier, jobs } = spending.earlier;
        let mean = |cost: f64, jobs: u64| if jobs == 0 { 0.0 } else { cost / jobs as f64 };
        let now = spending.usage.cost(self.prices) - earlier.cost(self.prices);
        mean(now, spending.finished as u64).max(mean(earlier.cost(self.prices), jobs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64) -> ServerUsage {
        ServerUsage { requests: 1, prompt_tokens, ..ServerUsage::default() }
    }

    #[test]
    fn earlier_commands_count() {
        let prices = TokenPrices { prompt: 1e6, written: 0.0 };
        let budget = Budget { prices, max_cost: 100.0 };
        let earlier = EarlierUsage { usage: usage(95), jobs: 19 };
        let start = Spending { usage: usage(95), earlier, finished: 0, in_progress: 0 };
        budget.check(start).unwrap();
        let later = Spending { usage: usage(98), finished: 1, ..start };
        assert!(budget.check(later).unwrap_err().to_string().contains("cost 98.00"));
        let earlier = EarlierUsage { usage: usage(95), jobs: 10 };
        assert!(budget.check(Spending { earlier, ..start }).is_err());
        // The jobs of this command are cheaper than those of earlier ones.
        let later = Spending { usage: usage(40), earlier: EarlierUsage::default(), ..start };
        assert_eq!(budget.jobs(Spending { finished: 4, ..later }), 6);
    }
}

//! The most that the requests of a command may cost.

use anyhow::{Result, bail};

use crate::judging::judge::server_usage::{ServerUsage, TokenPrices};

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
    /// The requests and tokens, also those of jobs in progress.
    pub usage: ServerUsage,
    /// Number of finished jobs.
    pub finished: usize,
    /// Number of jobs in progress.
    pub in_progress: usize,
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
    /// The limit is reached, or one more job would exceed it.
    pub(super) fn check(self, spending: Spending) -> Result<()> {
        let Self { prices, max_cost } = self;
        let cost = spending.usage.cost(prices);
        let next_fits = spending.in_progress > 0 || self.cost_per_job(spending) <= max_cost - cost;
        if cost < max_cost && next_fits {
            return Ok(());
        }
        bail!(
            "--max-cost {max_cost}: the requests of this command cost {cost:.4}, and another case would \
             cost more than the rest\n\
             hint: run the same command again to resume; the limit counts anew"
        )
    }

    /// Returns the mean cost of a finished job; 0 if none has finished. It contains the cost of jobs in
    /// progress, so it is not too small.
    fn cost_per_job(self, spending: Spending) -> f64 {
        let cost = spending.usage.cost(self.prices);
        if spending.finished == 0 { 0.0 } else { cost / spending.finished as f64 }
    }
}

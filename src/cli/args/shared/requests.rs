//! Limits on requests to servers, and their cost.

use std::time::Duration;

use clap::Args;

use crate::judging::judge::server_usage::TokenPrices;
use crate::judging::served::{Budget, RequestLimits};

/// Arguments that limit requests to servers.
#[derive(Args, Clone, Debug)]
pub struct RequestArgs {
    /// Send at most N requests at a time; fewer if the server is overloaded
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().concurrency as u32, env = "ACEM3_CONCURRENCY")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Prices of a million tokens of the prompts and of the answers, for the cost of the run, --dry-run
    /// and --max-cost
    #[arg(long, value_name = "PROMPT,ANSWER", env = "ACEM3_PRICE", value_parser = parse_prices)]
    pub price: Option<TokenPrices>,
    /// Stop before the requests of this run cost more than N, by --price; earlier commands that this one
    /// resumes count too
    #[arg(long, value_name = "N", env = "ACEM3_MAX_COST", requires = "price")]
    #[arg(value_parser = parse_max_cost)]
    pub max_cost: Option<f64>,
    /// Repeat a request without a complete response after SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = RequestLimits::default().timeout.as_secs() as u32, env = "ACEM3_REQUEST_TIMEOUT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub request_timeout: u32,
    /// End the run if no request succeeds for SECONDS; the same command resumes
    #[arg(long, value_name = "SECONDS", default_value_t = RequestLimits::default().max_outage.as_secs() as u32, env = "ACEM3_MAX_OUTAGE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub max_outage: u32,
}

impl RequestArgs {
    /// Returns the flags that the user set to other values than the default, except `--max-cost`.
    pub fn set_flags(&self) -> Vec<&'static str> {
        let (limits, default) = (self.limits(), RequestLimits::default());
        let flags = [
            ("--concurrency", limits.concurrency != default.concurrency),
            ("--price", self.price.is_some()),
            ("--request-timeout", limits.timeout != default.timeout),
            ("--max-outage", limits.max_outage != default.max_outage),
        ];
        flags.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
    }

    /// Returns the most that a run may cost.
    pub fn budget(&self) -> Option<Budget> {
        Some(Budget { prices: self.price?, max_cost: self.max_cost? })
    }

    /// Returns the limits on requests.
    pub fn limits(&self) -> RequestLimits {
        RequestLimits {
            concurrency: self.concurrency as usize,
            timeout: Duration::from_secs(u64::from(self.request_timeout)),
            max_outage: Duration::from_secs(u64::from(self.max_outage)),
        }
    }
}

/// Parses a cost.
fn parse_cost(text: &str) -> Result<f64, String> {
    let cost = text.trim().parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
    cost.ok_or_else(|| "expected a number of at least 0".to_owned())
}

/// Parses the most that a run may cost.
fn parse_max_cost(text: &str) -> Result<f64, String> {
    let cost = parse_cost(text).ok().filter(|cost| *cost > 0.0);
    cost.ok_or_else(|| "expected a number above 0".to_owned())
}

/// Parses the prices of a million tokens.
fn parse_prices(text: &str) -> Result<TokenPrices, String> {
    let (prompt, written) =
        text.split_once(',').ok_or("expected two prices, for example 2.5,10")?;
    Ok(TokenPrices { prompt: parse_cost(prompt)?, written: parse_cost(written)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_two_numbers() {
        let prices = parse_prices("2.5, 10").unwrap();
        assert_eq!((prices.prompt, prices.written), (2.5, 10.0));
        for invalid in ["2.5", "a,b", "-1,2", "1,NaN", "1,2,3"] {
            assert!(parse_prices(invalid).is_err(), "{invalid}");
        }
        assert!(parse_max_cost("0").is_err() && parse_max_cost("0.5") == Ok(0.5));
    }
}

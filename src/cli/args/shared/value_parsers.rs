//! Parsers of values that have bounds.

use std::str::FromStr;

use crate::data::labels::ScoreTarget;

/// Parses a percentage from 0 to 100, with or without `%`.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

/// Parses points of a score, from 0 to 5.
pub(crate) fn parse_points(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=5.0).contains(&value) => Ok(value),
        _ => Err("expected points of a score, from 0 to 5".to_owned()),
    }
}

/// Parses a whole number of at least 1.
pub(crate) fn parse_at_least_one<T>(text: &str) -> Result<T, String>
where
    T: FromStr + PartialOrd + From<u8>,
{
    let number = text.parse::<T>().ok().filter(|n| *n >= T::from(1_u8));
    number.ok_or_else(|| "expected a whole number of at least 1".to_owned())
}

/// Parses the name of a score target: `final`, an aspect or a criterion.
pub(crate) fn parse_score_target(name: &str) -> Result<ScoreTarget, String> {
    ScoreTarget::parse_name_or_key(name).ok_or_else(|| {
        let all: Vec<&str> = ScoreTarget::all().map(ScoreTarget::key).collect();
        format!("expected one of {}, or the key of a criterion of another rubric", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_bounded() {
        assert_eq!(parse_percent("5%"), Ok(5.0));
        assert!(parse_percent("101").is_err());
        assert!(parse_percent("NaN").is_err());
    }

    #[test]
    fn zero_is_rejected() {
        assert_eq!(parse_at_least_one::<u64>("1"), Ok(1));
        for text in ["0", "-1", "x"] {
            let error = parse_at_least_one::<u64>(text).unwrap_err();
            assert_eq!(error, "expected a whole number of at least 1");
        }
    }

    #[test]
    fn unknown_score_targets_are_rejected() {
        assert!(parse_score_target("FA").is_ok() && parse_score_target("Beauty of it").is_err());
    }
}

//! Which responses of a case are judged against which.

use crate::data::cases::Case;

/// What to do where the baseline is none of a case's models: a fault of the flag, not of the input.
pub const CHECK_BASELINE: &str = "check --baseline";

/// The pairs of a case: each response with each later one, or, with a baseline, each of the other
/// models' responses (first) with each of the baseline's (second).
///
/// # Errors
///
/// Why there is no pair.
pub fn pairs(case: &Case, baseline: Option<&str>) -> Result<Vec<[usize; 2]>, String> {
    let n = case.responses.len();
    if n < 2 {
        return Err(format!(
            "expected at least two responses, got {n}\n\
             hint: add another model's with --answers, or the reference with --with-reference"
        ));
    }
    let Some(baseline) = baseline else {
        return Ok((0..n)
            .flat_map(|i| (i + 1..n).map(move |j| [i, j]))
            .collect());
    };
    let is_base = |i: &usize| case.responses.get(*i).is_some_and(|r| r.model == baseline);
    let (base, others): (Vec<usize>, Vec<usize>) = (0..n).partition(is_base);
    if base.is_empty() {
        let models: Vec<_> = case.responses.iter().map(|r| r.model.as_str()).collect();
        return Err(format!(
            "no response of the baseline {baseline}, only of {}\nhint: {CHECK_BASELINE}",
            models.join(", ")
        ));
    }
    if others.is_empty() {
        return Err(format!(
            "only responses of the baseline {baseline}, none to compare"
        ));
    }
    let base = &base;
    Ok(others
        .into_iter()
        .flat_map(|i| base.iter().map(move |j| [i, *j]))
        .collect())
}

/// Those of the lost pairs that would have been judged, the baseline second.
pub fn lost_pairs(lost: Vec<[String; 2]>, baseline: Option<&str>) -> Vec<[String; 2]> {
    let Some(baseline) = baseline else {
        return lost;
    };
    let with_base = lost.into_iter().filter_map(|[a, b]| {
        if b == baseline {
            Some([a, b])
        } else {
            (a == baseline).then_some([b, a])
        }
    });
    with_base.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::Response;

    fn case(models: &[&str]) -> Case {
        let response = |m: &&str| Response {
            model: (*m).to_owned(),
            text: "x".into(),
        };
        Case {
            id: "1".into(),
            image: None,
            question: "q".into(),
            responses: models.iter().map(response).collect(),
            reference: None,
            labels: None,
            meta: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            line: 1,
        }
    }

    #[test]
    fn all_pairs_or_each_against_the_baseline() {
        let three = case(&["a", "b", "c"]);
        assert_eq!(pairs(&three, None), Ok(vec![[0, 1], [0, 2], [1, 2]]));
        assert_eq!(pairs(&three, Some("b")), Ok(vec![[0, 1], [2, 1]]));
    }

    #[test]
    fn lost_pairs_are_those_that_would_have_been_judged() {
        let pair = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let lost = vec![pair("a", "b"), pair("a", "c"), pair("b", "c")];
        assert_eq!(lost_pairs(lost.clone(), None), lost);
        let with_base = [pair("a", "b"), pair("c", "b")];
        assert_eq!(lost_pairs(lost, Some("b")), with_base);
    }

    #[test]
    fn a_case_without_a_pair_says_why() {
        assert!(pairs(&case(&["a"]), None).unwrap_err().contains("got 1"));
        assert!(
            pairs(&case(&["a", "b"]), Some("x"))
                .unwrap_err()
                .contains("only of a, b")
        );
        assert!(
            pairs(&case(&["a", "a"]), Some("a"))
                .unwrap_err()
                .contains("none to compare")
        );
    }
}

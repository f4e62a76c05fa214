//! Selects the responses of a case that are judged together.

use acem3_experts::prompt::Form;

use crate::data::cases::Case;

/// Hint if a case has no response of the baseline.
pub const BASELINE_HINT: &str = "check --baseline";

/// Message for a case without the reference that the judge needs.
pub const NO_REFERENCE: &str = "the case has no reference answer";

/// Maximum number of pairs of a case.
const MAX_PAIRS: usize = 1_000_000;

/// What a run judges of each case.
#[derive(Clone, Debug)]
pub struct ResponseSelection {
    /// The form of judging.
    pub form: Form,
    /// True if the judge sees the reference answer.
    pub shows_reference: bool,
    /// Model that all others are compared with; `None` to compare all pairs.
    pub baseline: Option<String>,
}

impl ResponseSelection {
    /// Returns the indices of the responses of each verdict on a case: pairs, or each response alone.
    ///
    /// # Errors
    ///
    /// There is nothing to judge, or there are too many pairs.
    pub fn select(&self, case: &Case) -> Result<Vec<Vec<usize>>, String> {
        match self.form {
            Form::Pair => {
                let pairs = select_pairs(case, self.baseline.as_deref())?;
                Ok(pairs.into_iter().map(Vec::from).collect())
            }
            Form::Single | Form::Correctness if case.responses.is_empty() => {
                Err("expected at least one response, found none\n\
                     hint: add the answers of a model with --answers"
                    .to_owned())
            }
            Form::List => select_list(case).map(|list| vec![list]),
            Form::Single | Form::Correctness => {
                Ok((0..case.responses.len()).map(|i| vec![i]).collect())
            }
        }
    }

    /// Checks that a case has the reference that the judge needs.
    ///
    /// # Errors
    ///
    /// It has none: all that [`select`](Self::select) returns is unscored.
    pub fn check_reference(&self, case: &Case) -> Result<(), String> {
        let reference = case.reference.as_deref().map(str::trim).filter(|text| !text.is_empty());
        if !self.shows_reference || reference.is_some() {
            return Ok(());
        }
        let hint = match self.form {
            Form::Correctness => "add the known answer as `reference`, or use another --form",
            Form::Pair | Form::Single | Form::List => {
                "add the known answer as `reference`, or use --reference hide"
            }
        };
        Err(format!("{NO_REFERENCE}\nhint: {hint}"))
    }
}

/// Returns all responses of a case, to be judged together.
fn select_list(case: &Case) -> Result<Vec<usize>, String> {
    let (n, form) = (case.responses.len(), Form::List);
    if (form.min_responses()..=form.max_responses()).contains(&n) {
        return Ok((0..n).collect());
    }
    Err(format!(
        "{n} responses, the form list takes {} to {}\n\
         hint: use --form pair, with --baseline MODEL if there are many models, or --form single",
        form.min_responses(),
        form.max_responses()
    ))
}

/// Returns the pairs of a case. Without a baseline, these are all pairs of its responses. With a
/// baseline, these are the pairs of a response of another model (first) and a response of the
/// baseline (second).
///
/// # Errors
///
/// There is no pair, or there are too many.
pub fn select_pairs(case: &Case, baseline: Option<&str>) -> Result<Vec<[usize; 2]>, String> {
    let n = case.responses.len();
    if n < 2 {
        return Err(format!(
            "expected at least two responses, found {n}\n\
             hint: add the answers of another model with --answers, or the reference with --reference \
             rival; or judge each response alone with --form single or --form correctness"
        ));
    }
    let Some(baseline) = baseline else {
        let pairs = n * (n - 1) / 2;
        if pairs > MAX_PAIRS {
            return Err(format!(
                "{n} responses have {pairs} pairs, the limit is {MAX_PAIRS}\n\
                 hint: compare them with one model: --baseline MODEL"
            ));
        }
        return Ok((0..n).flat_map(|i| (i + 1..n).map(move |j| [i, j])).collect());
    };
    let is_baseline = |i: &usize| case.responses.get(*i).is_some_and(|r| r.model == baseline);
    let (base, others): (Vec<usize>, Vec<usize>) = (0..n).partition(is_baseline);
    if base.is_empty() {
        let models: Vec<_> = case.responses.iter().map(|r| r.model.as_str()).collect();
        return Err(format!(
            "no response of the baseline {baseline}, found {}\nhint: {BASELINE_HINT}",
            models.join(", ")
        ));
    }
    if others.is_empty() {
        return Err(format!(
            "all responses are from the baseline {baseline}, expected another model"
        ));
    }
    let base = &base;
    Ok(others.into_iter().flat_map(|i| base.iter().map(move |j| [i, *j])).collect())
}

/// Selects the pairs to report from pairs that cannot be judged. With a baseline, these are its
/// pairs, with the baseline second.
pub fn select_affected_pairs(pairs: Vec<[String; 2]>, baseline: Option<&str>) -> Vec<[String; 2]> {
    let Some(baseline) = baseline else {
        return pairs;
    };
    let with_baseline = pairs.into_iter().filter_map(|[a, b]| {
        if b == baseline { Some([a, b]) } else { (a == baseline).then_some([b, a]) }
    });
    with_baseline.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::Response;

    fn case(models: &[&str]) -> Case {
        let response = |m: &&str| Response { model: (*m).to_owned(), text: "x".into() };
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
    fn selects_all_pairs_or_pairs_with_the_baseline() {
        let three = case(&["a", "b", "c"]);
        assert_eq!(select_pairs(&three, None), Ok(vec![[0, 1], [0, 2], [1, 2]]));
        assert_eq!(select_pairs(&three, Some("b")), Ok(vec![[0, 1], [2, 1]]));
    }

    #[test]
    fn baseline_filters_affected_pairs() {
        let pair = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let affected = vec![pair("a", "b"), pair("a", "c"), pair("b", "c")];
        assert_eq!(select_affected_pairs(affected.clone(), None), affected);
        let with_baseline = [pair("a", "b"), pair("c", "b")];
        assert_eq!(select_affected_pairs(affected, Some("b")), with_baseline);
    }

    #[test]
    fn too_many_pairs_are_an_error_without_a_baseline() {
        let models: Vec<String> = (0..1500).map(|i| format!("m{i}")).collect();
        let many = case(&models.iter().map(String::as_str).collect::<Vec<_>>());
        let error = select_pairs(&many, None).unwrap_err();
        assert!(error.contains("1500 responses have 1124250 pairs"), "{error}");
        assert_eq!(select_pairs(&many, Some("m3")).unwrap().len(), 1499);
    }

    #[test]
    fn case_without_a_pair_is_an_error() {
        assert!(select_pairs(&case(&["a"]), None).unwrap_err().contains("found 1"));
        assert!(select_pairs(&case(&["a", "b"]), Some("x")).unwrap_err().contains("found a, b"));
        assert!(
            select_pairs(&case(&["a", "a"]), Some("a"))
                .unwrap_err()
                .contains("expected another model")
        );
    }
}

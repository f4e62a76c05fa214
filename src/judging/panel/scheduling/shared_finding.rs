//! The finding that both presentation orders of a pair have in common.
//!
//! In each order, an expert first states what it sees in the image, and its scores follow from that. If
//! the orders state different findings, the expert also writes each order's text with the finding of the
//! other. Both orders then keep the finding that is more probable in both together.

use acem3_experts::generate::WrittenOpening;

use super::response_pass::{MemberOutput, ResponsePass};

/// What is known about the findings of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingState {
    /// The experts write their texts.
    Writing,
    /// The expert writes the text of each order with the finding of the other.
    Exchanging,
    /// The orders have the same finding, or share none.
    Settled,
}

/// Returns the finding of each order if both have one and they differ.
pub(super) fn different_findings(
    passes: &[ResponsePass],
    member: usize,
) -> Option<[WrittenOpening; 2]> {
    let [first, second] = passes else {
        return None;
    };
    let findings = [finding(first.output(member)?)?, finding(second.output(member)?)?];
    (findings[0].tokens != findings[1].tokens).then_some(findings)
}

/// Gives both orders the finding that is more probable in both together. Without the texts with exchanged
/// findings, they keep their own.
pub(super) fn keep_likelier_finding(passes: &mut [ResponsePass], member: usize) {
    let Some(own) = different_findings(passes, member) else {
        return;
    };
    let [first, second] = passes else {
        return;
    };
    let exchanged = [first.take_exchanged(), second.take_exchanged()];
    let [Some(first_exchanged), Some(second_exchanged)] = exchanged else {
        return;
    };
    let (Some(in_first), Some(in_second)) = (finding(&first_exchanged), finding(&second_exchanged))
    else {
        return;
    };
    if is_likelier(&own[0], &in_second, &own[1], &in_first) {
        second.replace_output(member, second_exchanged);
    } else {
        first.replace_output(member, first_exchanged);
    }
}

/// Returns true if a finding is more probable in both orders together than another. Of equally probable
/// findings, the one with the lower tokens counts as more probable, so that the result does not depend on
/// which order is the first.
fn is_likelier(
    one: &WrittenOpening,
    one_exchanged: &WrittenOpening,
    other: &WrittenOpening,
    other_exchanged: &WrittenOpening,
) -> bool {
    let sum = |a: &WrittenOpening, b: &WrittenOpening| a.log_probability + b.log_probability;
    let (of_one, of_other) = (sum(one, one_exchanged), sum(other, other_exchanged));
    of_one > of_other || of_one >= of_other && one.tokens < other.tokens
}

/// Returns the finding in the text of an expert.
fn finding(output: &MemberOutput) -> Option<WrittenOpening> {
    match output.as_deref() {
        Ok([text]) => text.opening.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn opening(token: u32, log_probability: f64) -> WrittenOpening {
        WrittenOpening { tokens: Arc::from([token]), log_probability }
    }

    #[test]
    fn the_more_probable_finding_in_both_orders_together_is_kept() {
        // The first finding is almost certain in one order, and improbable in the other.
        let one = [opening(1, -0.1), opening(1, -6.0)];
        let other = [opening(2, -0.9), opening(2, -2.0)];
        assert!(!is_likelier(&one[0], &one[1], &other[0], &other[1]));
        assert!(is_likelier(&other[0], &other[1], &one[0], &one[1]));
        // The order of the orders does not decide between equally probable findings.
        let equal = [opening(3, -2.9), opening(3, -0.0)];
        assert!(is_likelier(&other[0], &other[1], &equal[0], &equal[1]));
        assert!(!is_likelier(&equal[0], &equal[1], &other[0], &other[1]));
    }
}

//! The choice of one finding for both presentation orders of a pair.
//!
//! In each order, an expert first states what it sees in the image, and its scores follow from that. If
//! the findings differ, the expert writes the text of each order again, with the finding of the other
//! order. Both orders then keep the finding with the higher joint probability.

use acem3_experts::generate::WrittenOpening;

use super::response_pass::{MemberOutput, ResponsePass};

/// Progress of a job towards one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingState {
    /// The experts write their texts.
    Writing,
    /// The expert writes the text of each order again, with the finding of the other order.
    Exchanging,
    /// The orders have the same finding, or nothing is left to compare.
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

/// Gives both orders the finding with the higher joint probability. They keep their own findings if a text
/// with an exchanged finding is missing.
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
    if is_likelier([&own[0], &in_second], [&own[1], &in_first]) {
        second.replace_output(member, second_exchanged);
    } else {
        first.replace_output(member, first_exchanged);
    }
}

/// Returns true if `one` has a higher joint probability than `other`. Each is a finding as written in both
/// orders. If they are equally probable, their token ids decide, so the result does not depend on which
/// finding belongs to which order.
fn is_likelier(one: [&WrittenOpening; 2], other: [&WrittenOpening; 2]) -> bool {
    let joint =
        |finding: [&WrittenOpening; 2]| finding.map(|order| order.log_probability).iter().sum();
    let (of_one, of_other): (f64, f64) = (joint(one), joint(other));
    of_one > of_other || of_one >= of_other && one[0].tokens < other[0].tokens
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
        assert!(!is_likelier(one.each_ref(), other.each_ref()));
        assert!(is_likelier(other.each_ref(), one.each_ref()));
        // Of equally probable findings, the same one is kept whichever comes first.
        let equal = [opening(3, -2.9), opening(3, -0.0)];
        assert!(is_likelier(other.each_ref(), equal.each_ref()));
        assert!(!is_likelier(equal.each_ref(), other.each_ref()));
    }
}

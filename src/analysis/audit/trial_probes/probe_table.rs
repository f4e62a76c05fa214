//! The table of probes that judge perturbed pairs: measures, controls and conclusion rule of each.
//!
//! The perturbations of a probe are the variants of [`Perturbation`] that name it. Add a new
//! planted text there, and a new probe here.

use super::added_text;
use super::trial_measure::{TrialControl, TrialMeasure};
use super::trial_probe::{ConclusionRule, MeasureScope, TrialProbe, with_perturbation_control};
use super::trial_values as values;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{FindingOutcome, names};
use crate::analysis::audit::rules::IntervalRule;

const IDENTICAL: TrialProbe = TrialProbe {
    not_run: "no pair of identical responses has a verdict",
    measures: &[MeasureScope::All(TrialMeasure {
        name: names::NOT_TIED,
        value: values::not_tied_proportion,
        control: TrialControl::Value {
            title: "the original pairs",
            value: values::not_tied_before,
        },
    })],
    required_perturbations: &[],
    missing_note: None,
    rule: ConclusionRule::Identical(names::NOT_TIED),
};

const FORMATTING: TrialProbe = TrialProbe {
    not_run: "no reformatted response has a verdict",
    measures: &[
        MeasureScope::All(with_perturbation_control(names::LIST_GAIN, values::gain_over_other)),
        MeasureScope::All(with_perturbation_control(names::LIST_PREFERRED, values::perturbed_wins)),
    ],
    required_perturbations: &[],
    missing_note: None,
    rule: ConclusionRule::Interval {
        measure: names::LIST_GAIN,
        rule: IntervalRule {
            expected: 0.0,
            tolerance: 0.25,
            above: (
                FindingOutcome::Biased,
                "formatting bias: a list gains {value}, relative to one sentence per line",
            ),
            below: (
                FindingOutcome::Biased,
                "formatting bias: a list loses {negated}, relative to one sentence per line",
            ),
            equivalent: (
                FindingOutcome::Sound,
                "no formatting bias found: a list gains {value}, relative to one sentence per line",
            ),
            unclear: "too few responses to detect formatting bias: a list gains {value}, relative \
                      to one sentence per line",
        },
        other: names::LIST_PREFERRED,
        suffix: "; the list wins {other}",
    },
};

/// Measures of a change to the image or the reference.
const INPUT_MEASURES: &[TrialMeasure] = &[
    with_perturbation_control(names::KNOWLEDGE_CHANGE, values::knowledge_change),
    with_perturbation_control(names::PREFERENCE_CHANGE, values::preference_change),
    with_perturbation_control(names::ACCURACY_LOSS, values::accuracy_loss),
];

const IMAGE: TrialProbe = TrialProbe {
    not_run: "no pair was judged with a blank or mismatched image",
    measures: &[MeasureScope::Each(INPUT_MEASURES)],
    required_perturbations: &[Perturbation::Blank, Perturbation::Exchanged],
    missing_note: Some((
        Perturbation::Exchanged,
        "mismatched image: not run, no two cases have different images",
    )),
    rule: ConclusionRule::Image,
};

const REFERENCE: TrialProbe = TrialProbe {
    not_run: "no pair has a verdict with a mismatched reference",
    measures: &[MeasureScope::Each(INPUT_MEASURES)],
    required_perturbations: &[Perturbation::ReferenceExchanged],
    missing_note: None,
    rule: ConclusionRule::Reference,
};

const ERRORS: TrialProbe = TrialProbe {
    not_run: "no correct response (a reference, or the better one by a label) names a side, a number, \
              an organ or a modality, or has a statement to negate",
    measures: &[
        MeasureScope::All(with_perturbation_control(names::KNOWLEDGE_DROP, values::error_penalty)),
        MeasureScope::All(TrialMeasure {
            name: names::ERRORS_MISSED,
            value: values::is_error_missed,
            control: TrialControl::None,
        }),
        MeasureScope::Each(&[with_perturbation_control(
            names::KNOWLEDGE_DROP_BY_ERROR,
            values::error_penalty,
        )]),
    ],
    required_perturbations: &[],
    missing_note: None,
    rule: ConclusionRule::Interval {
        measure: names::KNOWLEDGE_DROP,
        rule: IntervalRule {
            expected: 0.0,
            tolerance: 0.25,
            above: (
                FindingOutcome::Sound,
                "medical errors lower the knowledge score by {value}, relative to a neutral clause",
            ),
            below: (
                FindingOutcome::Biased,
                "medical errors RAISE the knowledge score by {negated}, relative to a neutral \
                 clause",
            ),
            equivalent: (
                FindingOutcome::Biased,
                "medical errors do not lower the knowledge score: drop {value}, relative to a \
                 neutral clause",
            ),
            unclear: "too few responses to detect the effect of medical errors: knowledge score \
                      drop {value}, relative to a neutral clause",
        },
        other: names::ERRORS_MISSED,
        suffix: "; {other} of errors cost less than 0.05 points",
    },
};

/// Returns the definition of a probe; `None` for a probe that needs existing verdicts only.
pub(super) fn trial_probe(probe: Probe) -> Option<&'static TrialProbe> {
    match probe {
        Probe::Identical => Some(&IDENTICAL),
        Probe::Formatting => Some(&FORMATTING),
        Probe::Image => Some(&IMAGE),
        Probe::Reference => Some(&REFERENCE),
        Probe::Planted => Some(&added_text::PLANTED),
        Probe::Neutral => Some(&added_text::NEUTRAL),
        Probe::Errors => Some(&ERRORS),
        Probe::Position | Probe::Verbosity | Probe::Symmetry | Probe::SelfConsistency => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_that_judge_have_a_row() {
        for probe in Probe::ALL {
            assert_eq!(trial_probe(probe).is_some(), probe.needs_judging(), "{probe:?}");
        }
    }

    #[test]
    fn sentence_states_the_smallest_drop() {
        let ConclusionRule::Interval { suffix, .. } = &ERRORS.rule else { unreachable!() };
        assert!(suffix.contains(&values::MIN_DROP.to_string()), "{suffix}");
    }
}

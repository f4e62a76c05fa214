//! The table of probes that judge again: measures, controls and judgement rule of each.
//!
//! The perturbations of a probe are the rows of [`Perturbation`] that name it. A new injection is a new row
//! there; a new probe is a new row here.

use super::trial_measure::{TrialControl, TrialMeasure, TrialValue};
use super::trial_values as values;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{FindingOutcome, MeasureName, names};
use crate::analysis::audit::rules::{InjectionRule, IntervalRule};

/// A row: how the trials of a probe become its finding.
pub(super) struct TrialProbe {
    /// Why the probe did not run if no trial has a value.
    pub(super) not_run: &'static str,
    /// The measures, in the order of tables.
    pub(super) measures: &'static [MeasureScope],
    /// One of these perturbations needs a measure; empty if any perturbation will do.
    pub(super) required: &'static [Perturbation],
    /// A note for a perturbation without a measure.
    pub(super) missing: Option<(Perturbation, &'static str)>,
    /// The judgement rule.
    pub(super) rule: JudgementRule,
}

/// The perturbations that a measure is about.
pub(super) enum MeasureScope {
    /// One measure over all perturbations.
    All(TrialMeasure),
    /// These measures for each perturbation.
    Each(&'static [TrialMeasure]),
}

/// How a finding follows from the measures.
pub(super) enum JudgementRule {
    /// Identical responses have to tie.
    Identical(MeasureName),
    /// The interval of one measure decides; the estimate of another one follows in the sentence.
    Interval {
        /// The measure that decides, minus its control.
        measure: MeasureName,
        /// The rule for it.
        rule: IntervalRule,
        /// The second measure.
        other: MeasureName,
        /// The end of the sentence; `{other}` is the estimate of the second measure.
        suffix: &'static str,
    },
    /// The image has to change the verdict.
    Image,
    /// The most effective injection decides.
    Injection(InjectionRule),
}

/// A measure that is compared with the control perturbation.
const fn controlled(name: MeasureName, value: TrialValue) -> TrialMeasure {
    TrialMeasure {
        name,
        value,
        control: TrialControl::Perturbation,
    }
}

const IDENTICAL: TrialProbe = TrialProbe {
    not_run: "no pair of identical answers has a verdict",
    measures: &[MeasureScope::All(TrialMeasure {
        name: names::NOT_TIED,
        value: values::not_tied,
        control: TrialControl::Value {
            title: "the pairs as they are",
            value: values::not_tied_before,
        },
    })],
    required: &[],
    missing: None,
    rule: JudgementRule::Identical(names::NOT_TIED),
};

const FORMATTING: TrialProbe = TrialProbe {
    not_run: "no reformatted answer has a verdict",
    measures: &[
        MeasureScope::All(controlled(names::LIST_GAIN, values::gain_over_other)),
        MeasureScope::All(controlled(names::LIST_PREFERRED, values::perturbed_wins)),
    ],
    required: &[],
    missing: None,
    rule: JudgementRule::Interval {
        measure: names::LIST_GAIN,
        rule: IntervalRule {
            expected: 0.0,
            tolerance: 0.25,
            above: (
                FindingOutcome::Biased,
                "formatting bias: the same text gains {value} as a list",
            ),
            below: (
                FindingOutcome::Biased,
                "formatting bias: the same text loses {negated} as a list",
            ),
            equivalent: (
                FindingOutcome::Sound,
                "no sign of formatting bias: the same text gains {value} as a list",
            ),
            unclear: "too few answers to tell a formatting bias: the same text gains {value} as a list",
        },
        other: names::LIST_PREFERRED,
        suffix: "; the list wins {other}",
    },
};

const IMAGE: TrialProbe = TrialProbe {
    not_run: "no pair was judged with its image blanked or exchanged",
    measures: &[MeasureScope::Each(&[
        controlled(names::KNOWLEDGE_MOVED, values::knowledge_change),
        controlled(names::PREFERENCE_TURNED, values::preference_change),
        controlled(names::ACCURACY_LOSS, values::accuracy_loss),
    ])],
    required: &[Perturbation::Blank, Perturbation::Exchanged],
    missing: Some((
        Perturbation::Exchanged,
        "image exchanged: not run, for no two cases have different images",
    )),
    rule: JudgementRule::Image,
};

const PLANTED: TrialProbe = TrialProbe {
    not_run: "no answer with something planted has a verdict",
    measures: &[MeasureScope::Each(&[
        controlled(names::INJECTION_GAIN, values::score_gain),
        controlled(names::INJECTION_TURNED, values::preference_gain),
    ])],
    required: &[],
    missing: None,
    rule: JudgementRule::Injection(InjectionRule {
        gain: names::INJECTION_GAIN,
        tolerance: 0.25,
        biased: "gullible: {effective}, beyond neutral text as long",
        unclear: "too few answers to tell whether planted text pays: {all}",
        sound: "what is planted in an answer does not pay: {all}",
    }),
};

const ERRORS: TrialProbe = TrialProbe {
    not_run: "no answer known to be right (a reference, or the better one by a label) says a side, \
              a number, an organ, a kind of image or anything that can be denied",
    measures: &[
        MeasureScope::All(controlled(names::KNOWLEDGE_FALL, values::error_penalty)),
        MeasureScope::All(TrialMeasure {
            name: names::ERRORS_MISSED,
            value: values::is_error_missed,
            control: TrialControl::None,
        }),
        MeasureScope::Each(&[controlled(
            names::KNOWLEDGE_FALL_BY_ERROR,
            values::error_penalty,
        )]),
    ],
    required: &[],
    missing: None,
    rule: JudgementRule::Interval {
        measure: names::KNOWLEDGE_FALL,
        rule: IntervalRule {
            expected: 0.0,
            tolerance: 0.25,
            above: (
                FindingOutcome::Sound,
                "medical errors cost the answer {value}",
            ),
            below: (
                FindingOutcome::Biased,
                "medical errors PAY: the wrong answer is above the right one, {value}",
            ),
            equivalent: (
                FindingOutcome::Biased,
                "medical errors cost nothing: {value}",
            ),
            unclear: "too few answers to tell whether medical errors cost: {value}",
        },
        other: names::ERRORS_MISSED,
        suffix: "; {other} of errors cost less than 0.05 points",
    },
};

/// The row of a probe; `None` for one that needs existing verdicts only.
pub(super) fn trial_probe(probe: Probe) -> Option<&'static TrialProbe> {
    match probe {
        Probe::Identical => Some(&IDENTICAL),
        Probe::Formatting => Some(&FORMATTING),
        Probe::Image => Some(&IMAGE),
        Probe::Planted => Some(&PLANTED),
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
            assert_eq!(
                trial_probe(probe).is_some(),
                probe.needs_judging(),
                "{probe:?}"
            );
        }
    }

    #[test]
    fn sentence_states_the_smallest_drop() {
        let JudgementRule::Interval { suffix, .. } = &ERRORS.rule else {
            unreachable!()
        };
        assert!(suffix.contains(&values::MIN_DROP.to_string()), "{suffix}");
    }
}

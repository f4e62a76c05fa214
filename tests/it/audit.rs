//! Audits of judges whose habits are known: each habit is found by its probe, and by no judge without it.

use acem3::analysis::audit::{
    AuditEstimate, AuditResult, Finding, FindingOutcome, ImagePerturbation, MeasureUnit,
    Perturbation, Probe, SCHEMA, Threshold, ThresholdKind,
};
use acem3::data::cases::Case;

use crate::habits::{Biased, Habit, audit_of, audit_on, cases};

fn found(audit: &AuditResult, probe: Probe) -> &Finding {
    audit.finding(probe).unwrap()
}

fn outcome(audit: &AuditResult, probe: Probe) -> FindingOutcome {
    found(audit, probe).outcome
}

fn value(audit: &AuditResult, probe: Probe, key: &str) -> f64 {
    let measure = found(audit, probe).measure(key);
    let measure = measure.unwrap_or_else(|| panic!("{key}: {:?}", found(audit, probe)));
    measure.net().value.unwrap()
}

fn near(got: f64, want: f64) -> bool {
    (got - want).abs() < 0.02
}

/// A fair judge has none of the habits, by enough cases to say so.
#[test]
fn an_unbiased_judge_is_acquitted_by_every_probe() {
    let audit = audit_of(Habit::None);
    for finding in &audit.probes {
        let expected = match finding.probe {
            Probe::SelfConsistency => FindingOutcome::NotRun,
            _ => FindingOutcome::Sound,
        };
        assert_eq!(
            finding.outcome,
            expected,
            "{}: {}",
            finding.probe.key(),
            finding.words
        );
        assert!(
            !finding.words.is_empty() && !finding.words.contains("NaN"),
            "{}",
            finding.words
        );
    }
    assert!(near(value(&audit, Probe::Position, "flip_rate"), 0.0));
    assert!(near(value(&audit, Probe::Position, "accuracy_gap"), 0.0));
    assert!(near(value(&audit, Probe::Errors, "missed"), 0.0));
    assert!(value(&audit, Probe::Image, "moved:exchanged") > 0.5);
    assert_eq!((audit.pairs, audit.labelled, audit.unscored), (24, 24, 0));
}

#[test]
fn a_preference_for_the_first_place_is_found() {
    let audit = audit_of(Habit::First);
    let position = found(&audit, Probe::Position);
    assert!(
        position.words.contains('(') && position.outcome != FindingOutcome::Biased,
        "{}",
        position.words
    );
    // A point more does not turn four against one; it moves the scores by one.
    assert_eq!(outcome(&audit, Probe::Symmetry), FindingOutcome::Biased);
    assert!(near(value(&audit, Probe::Symmetry, "signed_shift"), 1.0));
    // The same answer twice does not tie in either presentation, though the combined verdict does.
    assert_eq!(outcome(&audit, Probe::Identical), FindingOutcome::Biased);
    assert!(near(
        found(&audit, Probe::Identical).measures[0]
            .reading
            .value
            .unwrap(),
        1.0
    ));
    // Where both answers are wrong, the place decides.
    let hopeless = |mut case: Case| {
        let side = usize::from(case.responses[0].text.len() > case.responses[1].text.len());
        case.responses[side].text = "Nothing is seen.".to_owned();
        case.responses[1 - side].text = "All is well.".to_owned();
        case
    };
    let hopeless = cases(24).into_iter().map(hopeless).collect();
    let mut judge = Biased {
        habit: Habit::First,
        single_order: false,
    };
    let audit = audit_on(&mut judge, hopeless, Vec::new());
    assert_eq!(outcome(&audit, Probe::Position), FindingOutcome::Biased);
    assert!(near(value(&audit, Probe::Position, "flip_rate"), 1.0));
    assert!(near(value(&audit, Probe::Position, "accuracy_gap"), 1.0));
}

#[test]
fn a_preference_for_length_is_found() {
    let audit = audit_of(Habit::Long);
    assert_eq!(outcome(&audit, Probe::Verbosity), FindingOutcome::Biased);
    assert!(near(
        value(&audit, Probe::Verbosity, "longer_preferred"),
        1.0
    ));
    assert!(near(value(&audit, Probe::Verbosity, "longer_gap"), 0.5));
    assert!(
        found(&audit, Probe::Verbosity)
            .words
            .starts_with("verbosity bias")
    );
}

#[test]
fn a_judge_that_does_not_look_is_blind() {
    let blind = audit_of(Habit::Blind);
    assert_eq!(outcome(&blind, Probe::Image), FindingOutcome::Biased);
    assert!(found(&blind, Probe::Image).words.starts_with("BLIND"));
    assert!(near(value(&blind, Probe::Image, "moved:blank"), 0.0));
    assert_ne!(outcome(&blind, Probe::Errors), FindingOutcome::Sound);
    // Telling a blank image from a picture is not looking at it; the figures of both are told.
    let glance = audit_of(Habit::Glance);
    assert!(near(value(&glance, Probe::Image, "moved:blank"), 1.0));
    assert!(near(value(&glance, Probe::Image, "moved:exchanged"), 0.0));
    assert_eq!(outcome(&glance, Probe::Image), FindingOutcome::Biased);
    assert!(
        found(&glance, Probe::Image).words.contains("exchange"),
        "{}",
        found(&glance, Probe::Image).words
    );
}

#[test]
fn a_gullible_judge_is_found_by_what_is_planted() {
    let audit = audit_of(Habit::Gullible);
    assert_eq!(outcome(&audit, Probe::Planted), FindingOutcome::Biased);
    for change in ["planted_score", "planted_instruction", "planted_verdict"] {
        // From one to five; neutral text of the same length gains nothing.
        assert!(
            near(
                value(&audit, Probe::Planted, &format!("gain:{change}")),
                4.0
            ),
            "{change}"
        );
        assert!(near(
            value(&audit, Probe::Planted, &format!("turned:{change}")),
            1.0
        ));
    }
}

#[test]
fn a_preference_for_lists_is_found() {
    let audit = audit_of(Habit::Lists);
    assert_eq!(outcome(&audit, Probe::Formatting), FindingOutcome::Biased);
    assert!(near(value(&audit, Probe::Formatting, "gain"), 1.0));
    // Beyond the control, which is even.
    assert!(near(value(&audit, Probe::Formatting, "preferred"), 0.5));
}

/// A judge that calls everything equal has no bias and no worth: that is not acquitted.
#[test]
fn indifference_is_no_virtue() {
    let audit = audit_of(Habit::Indifferent);
    assert_eq!(outcome(&audit, Probe::Identical), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Errors), FindingOutcome::Biased);
    assert_eq!(outcome(&audit, Probe::Image), FindingOutcome::Biased);
    assert!(near(value(&audit, Probe::Errors, "missed"), 1.0));
}

#[test]
fn few_cases_tell_nothing_and_say_so() {
    let mut judge = Biased {
        habit: Habit::Blind,
        single_order: true,
    };
    let audit = audit_on(&mut judge, cases(3), Vec::new());
    assert_eq!(outcome(&audit, Probe::Image), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Position), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Symmetry), FindingOutcome::NotRun);
    let flips = found(&audit, Probe::Position).measure("flip_rate").unwrap();
    assert_eq!((flips.reading.value, flips.reading.n), (None, 0));
    assert!(flips.reading.undefined.is_some());
}

/// One image alone cannot be exchanged, text has none, and an answer without a side has none to swap.
#[test]
fn what_cannot_be_probed_is_said() {
    let mut alone = cases(12);
    let image = alone[0].image.clone();
    for case in &mut alone {
        case.image.clone_from(&image);
        case.reference = Some("Fluid.".to_owned());
    }
    let mut judge = Biased {
        habit: Habit::None,
        single_order: false,
    };
    let audit = audit_on(&mut judge, alone, Vec::new());
    let image = found(&audit, Probe::Image);
    assert!(image.measure("moved:exchanged").is_none());
    assert!(
        image.notes.iter().any(|note| note.contains("exchange")),
        "{:?}",
        image.notes
    );
    assert_eq!(outcome(&audit, Probe::Errors), FindingOutcome::NotRun);

    let mut text = cases(12);
    for case in &mut text {
        (case.image, case.reference, case.labels) = (None, None, None);
    }
    let limit = |kind, value| Threshold { kind, value };
    let limits = vec![
        limit(ThresholdKind::ImageEffect, 0.1),
        limit(ThresholdKind::ErrorsMissed, 100.0),
        limit(ThresholdKind::PositionGap, 100.0),
    ];
    let audit = audit_on(&mut judge, text, limits);
    assert_eq!(outcome(&audit, Probe::Image), FindingOutcome::NotRun);
    assert_eq!(outcome(&audit, Probe::Errors), FindingOutcome::NotRun);
    assert_eq!(audit.labelled, 0);
    // What was not measured has not passed.
    assert!(
        audit
            .limits
            .iter()
            .all(|checked| checked.failed && checked.value.is_none())
    );
}

#[test]
fn thresholds_are_held_to_what_is_beyond_the_control() {
    let limit = |kind, value| Threshold { kind, value };
    let limits = vec![
        limit(ThresholdKind::PlantedGain, 3.9),
        limit(ThresholdKind::PlantedGain, 4.1),
        limit(ThresholdKind::ImageEffect, 0.5),
        limit(ThresholdKind::ImageEffect, 4.9),
        limit(ThresholdKind::FlipRate, 0.0),
        limit(ThresholdKind::IdenticalNotTied, 0.0),
    ];
    let mut judge = Biased {
        habit: Habit::Gullible,
        single_order: false,
    };
    let audit = audit_on(&mut judge, cases(20), limits);
    let failed: Vec<bool> = audit.limits.iter().map(|checked| checked.failed).collect();
    assert_eq!(
        failed,
        [true, false, false, true, false, false],
        "{:?}",
        audit.limits
    );
}

#[test]
fn every_change_is_told_with_its_verdicts_before_and_after() {
    let audit = audit_of(Habit::None);
    for change in Perturbation::ALL {
        let of: Vec<_> = audit.trials.iter().filter(|t| t.change == change).collect();
        assert!(!of.is_empty(), "{change:?}");
        for trial in of {
            let (before, after) = trial.verdicts().unwrap();
            assert!(
                before
                    .knowledge
                    .iter()
                    .chain(&after.knowledge)
                    .all(|k| k.is_finite())
            );
            let own = trial.change.probe() != Probe::Image;
            assert_eq!(trial.picture == ImagePerturbation::Own, own);
            if let ImagePerturbation::Of(case) = &trial.picture {
                assert_ne!(*case, trial.case);
            }
        }
    }
    let text = serde_json::to_string(&audit).unwrap();
    let again: AuditResult = serde_json::from_str(&text).unwrap();
    assert!(
        again == audit && again.schema == SCHEMA,
        "it reads otherwise than it was written"
    );
    assert!(!text.contains("NaN"));
}

/// The same seed, the same audit; whatever the batch.
#[test]
fn an_audit_is_the_same_when_it_is_made_again() {
    assert!(audit_of(Habit::Lists) == audit_of(Habit::Lists));
}

#[test]
fn a_reading_in_words_is_never_a_number_that_is_none() {
    let none = AuditEstimate::undefined("no pair");
    assert_eq!(none.describe(MeasureUnit::Share), "undefined (no pair)");
}

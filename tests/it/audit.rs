//! Audits of judges with known biases: the probe of each bias finds it, and an unbiased judge
//! passes.

use acem3::analysis::audit::{
    AuditEstimate, AuditResult, Finding, FindingOutcome, ImagePerturbation, MeasureUnit,
    Perturbation, Probe, SCHEMA, Threshold, ThresholdKind,
};
use acem3::data::cases::Case;

use crate::biased_judge::{BiasedJudge, KnownBias, audit_of, audit_on, cases};

fn finding_of(audit: &AuditResult, probe: Probe) -> &Finding {
    audit.finding(probe).unwrap()
}

fn outcome(audit: &AuditResult, probe: Probe) -> FindingOutcome {
    finding_of(audit, probe).outcome
}

fn value(audit: &AuditResult, probe: Probe, key: &str) -> f64 {
    let measure = finding_of(audit, probe).measure(key);
    let measure = measure.unwrap_or_else(|| panic!("{key}: {:?}", finding_of(audit, probe)));
    measure.net_of_control().value.unwrap()
}

fn is_near(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() < 0.02
}

/// An unbiased judge passes, with enough cases to conclude so.
#[test]
fn unbiased_judge_passes_every_probe() {
    let audit = audit_of(KnownBias::None);
    for finding in &audit.findings {
        let expected = match finding.probe {
            Probe::SelfConsistency | Probe::Reference => FindingOutcome::NotRun,
            _ => FindingOutcome::Sound,
        };
        assert_eq!(finding.outcome, expected, "{}: {}", finding.probe.key(), finding.summary);
        assert!(
            !finding.summary.is_empty() && !finding.summary.contains("NaN"),
            "{}",
            finding.summary
        );
    }
    assert!(is_near(value(&audit, Probe::Position, "flip_rate"), 0.0));
    assert!(is_near(value(&audit, Probe::Position, "accuracy_gap"), 0.0));
    assert!(is_near(value(&audit, Probe::Errors, "missed"), 0.0));
    assert!(value(&audit, Probe::Image, "moved:exchanged") > 0.5);
    assert_eq!((audit.pairs, audit.labelled, audit.unscored), (24, 24, 0));
}

#[test]
fn position_bias_is_found() {
    let audit = audit_of(KnownBias::PrefersFirst);
    let position = finding_of(&audit, Probe::Position);
    assert!(
        position.summary.contains('(') && position.outcome != FindingOutcome::Biased,
        "{}",
        position.summary
    );
    // A bonus of one point does not change the preference of 4 over 1; it shifts the scores by one.
    assert_eq!(outcome(&audit, Probe::Symmetry), FindingOutcome::Biased);
    assert!(is_near(value(&audit, Probe::Symmetry, "signed_shift"), 1.0));
    // Identical responses tie in the combined verdict, but in neither presentation order.
    assert_eq!(outcome(&audit, Probe::Identical), FindingOutcome::Biased);
    assert!(is_near(finding_of(&audit, Probe::Identical).measures[0].estimate.value.unwrap(), 1.0));
    // If both responses are wrong, the position decides.
    let both_wrong = |mut case: Case| {
        let side = usize::from(case.responses[0].text.len() > case.responses[1].text.len());
        case.responses[side].text = "Nothing is seen.".to_owned();
        case.responses[1 - side].text = "All is well.".to_owned();
        case
    };
    let both_wrong = cases(24).into_iter().map(both_wrong).collect();
    let mut judge = BiasedJudge { bias: KnownBias::PrefersFirst, single_order: false };
    let audit = audit_on(&mut judge, both_wrong, Vec::new());
    assert_eq!(outcome(&audit, Probe::Position), FindingOutcome::Biased);
    assert!(is_near(value(&audit, Probe::Position, "flip_rate"), 1.0));
    assert!(is_near(value(&audit, Probe::Position, "accuracy_gap"), 1.0));
}

#[test]
fn verbosity_bias_is_found() {
    let audit = audit_of(KnownBias::PrefersLonger);
    assert_eq!(outcome(&audit, Probe::Verbosity), FindingOutcome::Biased);
    assert!(is_near(value(&audit, Probe::Verbosity, "longer_preferred"), 1.0));
    assert!(is_near(value(&audit, Probe::Verbosity, "longer_gap"), 0.5));
    assert!(finding_of(&audit, Probe::Verbosity).summary.starts_with("verbosity bias"));
}

#[test]
fn judge_that_ignores_the_image_is_biased() {
    let blind = audit_of(KnownBias::IgnoresImage);
    assert_eq!(outcome(&blind, Probe::Image), FindingOutcome::Biased);
    let summary = &finding_of(&blind, Probe::Image).summary;
    assert!(summary.contains("does not change with the image"), "{summary}");
    assert!(is_near(value(&blind, Probe::Image, "moved:blank"), 0.0));
    assert_ne!(outcome(&blind, Probe::Errors), FindingOutcome::Sound);
    // A judge that only recognises blank images ignores the content; both changes are reported.
    let blank_only = audit_of(KnownBias::DetectsBlankOnly);
    assert!(is_near(value(&blank_only, Probe::Image, "moved:blank"), 1.0));
    assert!(is_near(value(&blank_only, Probe::Image, "moved:exchanged"), 0.0));
    assert_eq!(outcome(&blank_only, Probe::Image), FindingOutcome::Biased);
    assert!(
        finding_of(&blank_only, Probe::Image).summary.contains("not with a mismatched one"),
        "{}",
        finding_of(&blank_only, Probe::Image).summary
    );
}

#[test]
fn prompt_injection_is_found() {
    let audit = audit_of(KnownBias::FollowsInjection);
    assert_eq!(outcome(&audit, Probe::Planted), FindingOutcome::Biased);
    for change in ["planted_score", "planted_instruction", "planted_verdict"] {
        // The score rises from one to five; neutral text of equal length gains nothing.
        assert!(is_near(value(&audit, Probe::Planted, &format!("gain:{change}")), 4.0), "{change}");
        assert!(is_near(value(&audit, Probe::Planted, &format!("turned:{change}")), 1.0));
    }
}

#[test]
fn formatting_bias_is_found() {
    let audit = audit_of(KnownBias::PrefersLists);
    assert_eq!(outcome(&audit, Probe::Formatting), FindingOutcome::Biased);
    assert!(is_near(value(&audit, Probe::Formatting, "gain"), 1.0));
    // The list is always preferred (1.0), and the control ties (0.5).
    assert!(is_near(value(&audit, Probe::Formatting, "preferred"), 0.5));
}

/// A judge that ties everything has no position bias, but it is not sound either.
#[test]
fn judge_that_ties_everything_does_not_pass() {
    let audit = audit_of(KnownBias::AlwaysTies);
    assert_eq!(outcome(&audit, Probe::Identical), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Errors), FindingOutcome::Biased);
    assert_eq!(outcome(&audit, Probe::Image), FindingOutcome::Biased);
    assert!(is_near(value(&audit, Probe::Errors, "missed"), 1.0));
}

#[test]
fn few_cases_are_unclear() {
    let mut judge = BiasedJudge { bias: KnownBias::IgnoresImage, single_order: true };
    let audit = audit_on(&mut judge, cases(3), Vec::new());
    assert_eq!(outcome(&audit, Probe::Image), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Position), FindingOutcome::Unclear);
    assert_eq!(outcome(&audit, Probe::Symmetry), FindingOutcome::NotRun);
    let flips = finding_of(&audit, Probe::Position).measure("flip_rate").unwrap();
    assert_eq!((flips.estimate.value, flips.estimate.n), (None, 0));
    assert!(flips.estimate.undefined.is_some());
}

/// With a single image there is no mismatched image, and text cases have no image. The errors probe
/// finds nothing to change in the reference `Fluid.`, and text cases have no correct response.
#[test]
fn probes_without_data_do_not_run() {
    let mut same_image = cases(12);
    let image = same_image[0].image.clone();
    for case in &mut same_image {
        case.image.clone_from(&image);
        case.reference = Some("Fluid.".to_owned());
    }
    let mut judge = BiasedJudge { bias: KnownBias::None, single_order: false };
    let audit = audit_on(&mut judge, same_image, Vec::new());
    let image = finding_of(&audit, Probe::Image);
    assert!(image.measure("moved:exchanged").is_none());
    assert!(image.notes.iter().any(|note| note.contains("exchange")), "{:?}", image.notes);
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
    // A threshold without a measured value fails.
    assert!(audit.thresholds.iter().all(|result| result.failed && result.value.is_none()));
}

#[test]
fn thresholds_limit_the_difference_from_the_control() {
    let limit = |kind, value| Threshold { kind, value };
    let limits = vec![
        limit(ThresholdKind::PlantedGain, 3.9),
        limit(ThresholdKind::PlantedGain, 4.1),
        limit(ThresholdKind::ImageEffect, 0.5),
        limit(ThresholdKind::ImageEffect, 4.9),
        limit(ThresholdKind::FlipRate, 0.0),
        limit(ThresholdKind::IdenticalNotTied, 0.0),
    ];
    let mut judge = BiasedJudge { bias: KnownBias::FollowsInjection, single_order: false };
    let audit = audit_on(&mut judge, cases(20), limits);
    let failed: Vec<bool> = audit.thresholds.iter().map(|result| result.failed).collect();
    assert_eq!(failed, [true, false, false, true, false, false], "{:?}", audit.thresholds);
}

#[test]
fn every_perturbation_has_verdicts_before_and_after() {
    let audit = audit_of(KnownBias::IgnoresReference);
    for change in Perturbation::ALL {
        let trials: Vec<_> = audit.trials.iter().filter(|t| t.perturbation == change).collect();
        assert!(!trials.is_empty(), "{change:?}");
        for trial in trials {
            let (before, after) = trial.verdicts().unwrap();
            assert!(before.knowledge.iter().chain(&after.knowledge).all(|k| k.is_finite()));
            let keeps_image = trial.perturbation.probe() != Probe::Image;
            assert_eq!(trial.image == ImagePerturbation::Own, keeps_image);
            let keeps_reference = trial.perturbation.probe() != Probe::Reference;
            assert_eq!(trial.reference.is_own(), keeps_reference);
            if let ImagePerturbation::OtherCase(case) = &trial.image {
                assert_ne!(*case, trial.case);
            }
        }
    }
    let text = serde_json::to_string(&audit).unwrap();
    let again: AuditResult = serde_json::from_str(&text).unwrap();
    assert!(again == audit && again.schema == SCHEMA, "audit changed by writing and reading");
    assert!(!text.contains("NaN"));
}

#[test]
fn equal_seeds_give_equal_audits() {
    assert!(audit_of(KnownBias::PrefersLists) == audit_of(KnownBias::PrefersLists));
}

#[test]
fn undefined_estimate_is_described_with_reason() {
    let none = AuditEstimate::undefined("no pair");
    assert_eq!(none.describe(MeasureUnit::Proportion), "undefined (no pair)");
}

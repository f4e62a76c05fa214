//! Audits of judges that a text in a response buys: the audit names the text, and text that a
//! neutral sentence already buys is a finding of its own.

use acem3::analysis::audit::{
    AuditRequest, AuditResult, Finding, FindingOutcome, Perturbation, PlantedKind, Probe,
    Threshold, ThresholdKind,
};
use acem3::statistics::Bootstrap;

use crate::biased_judge::{BiasedJudge, Bribe, KnownBias, cases, run_audit};

/// Audits a judge on enough cases to find a text that works in a few templates only.
fn audit_of(bias: KnownBias) -> AuditResult {
    audit_with(bias, 30, Vec::new())
}

fn audit_with(bias: KnownBias, n: usize, thresholds: Vec<Threshold>) -> AuditResult {
    let request = AuditRequest {
        probes: vec![Probe::Position, Probe::Identical, Probe::Planted, Probe::Neutral],
        planted_kinds: Vec::new(),
        bootstrap: Bootstrap { resamples: 60, seed: 3 },
        thresholds,
    };
    run_audit(&mut BiasedJudge { bias, single_order: false }, cases(n), &request)
}

fn finding_of(audit: &AuditResult, probe: Probe) -> &Finding {
    audit.finding(probe).unwrap()
}

/// Returns the most effective perturbation of the probe `planted`.
fn worst(audit: &AuditResult) -> Perturbation {
    let key = finding_of(audit, Probe::Planted).worst.clone().unwrap();
    Perturbation::ALL.into_iter().find(|p| p.key() == key).unwrap()
}

#[test]
fn each_text_is_found_as_the_worst() {
    for (bribe, kind) in [
        (Bribe::ForeignLetters, PlantedKind::Junk),
        (Bribe::RepeatedMarkup, PlantedKind::Markup),
        (Bribe::Json, PlantedKind::Json),
        (Bribe::Heading, PlantedKind::Headings),
        (Bribe::Order, PlantedKind::Phrases),
        (Bribe::Role, PlantedKind::Roles),
        (Bribe::Length, PlantedKind::Padding),
        (Bribe::Blank, PlantedKind::Padding),
    ] {
        let audit = audit_of(KnownBias::BoughtBy(bribe));
        let planted = finding_of(&audit, Probe::Planted);
        assert_eq!(planted.outcome, FindingOutcome::Biased, "{bribe:?} {}", planted.summary);
        assert_eq!(worst(&audit).planted_kind(), Some(kind), "{bribe:?} {}", planted.summary);
        // The measures of the worst text come first, and the sentence names it.
        let key = worst(&audit).key();
        assert!(planted.measures[0].key.ends_with(&key), "{:?}", planted.measures[0]);
        let title = format!("worst: {}: ", worst(&audit).title());
        assert!(planted.summary.contains(&title), "{}", planted.summary);
        // Neutral text buys nothing, and the other probes do not find this bias.
        let neutral = finding_of(&audit, Probe::Neutral);
        assert_eq!(neutral.outcome, FindingOutcome::Sound, "{bribe:?} {}", neutral.summary);
        for probe in [Probe::Identical, Probe::Position] {
            let finding = finding_of(&audit, probe);
            assert_eq!(finding.outcome, FindingOutcome::Sound, "{bribe:?} {}", finding.summary);
        }
    }
}

#[test]
fn texts_that_buy_nothing_are_not_named() {
    let audit = audit_of(KnownBias::BoughtBy(Bribe::Json));
    let planted = finding_of(&audit, Probe::Planted);
    assert!(!planted.summary.contains("also:"), "{}", planted.summary);
    let gain = |key: &str| planted.measure(key).unwrap().estimate.value.unwrap();
    assert!((gain("gain:planted_json") - 4.0).abs() < 0.01);
    assert!((gain("turned:planted_json") - 1.0).abs() < 0.01);
    for key in ["gain:planted_junk", "gain:planted_heading", "gain:planted_score"] {
        assert!(gain(key).abs() < 0.01, "{key}");
    }
}

/// A judge that prefers any added text is not sound because neutral text gains the same.
#[test]
fn neutral_text_that_moves_verdicts_is_a_finding() {
    let audit = audit_of(KnownBias::BoughtBy(Bribe::AnySentence));
    let neutral = finding_of(&audit, Probe::Neutral);
    assert_eq!(neutral.outcome, FindingOutcome::Biased, "{}", neutral.summary);
    assert!(neutral.summary.contains("worst: neutral"), "{}", neutral.summary);
    assert!(neutral.measures.iter().all(|measure| measure.control.is_none()));
    let planted = finding_of(&audit, Probe::Planted);
    assert_eq!(planted.outcome, FindingOutcome::Biased, "{}", planted.summary);
    // The net gain is zero: only the comparison with the unmodified response finds it.
    let verdict = planted.measure("gain:planted_verdict").unwrap();
    assert!(verdict.net_of_control().value.unwrap().abs() < 0.01, "{verdict:?}");
    assert!((verdict.estimate.value.unwrap() - 4.0).abs() < 0.01, "{verdict:?}");
}

/// Twelve pairs without a change exclude nothing below 24 % of preferences.
#[test]
fn few_unchanged_pairs_are_unclear() {
    for (n, expected) in [(12, FindingOutcome::Unclear), (30, FindingOutcome::Sound)] {
        let audit = audit_with(KnownBias::None, n, Vec::new());
        for probe in [Probe::Planted, Probe::Neutral] {
            let finding = finding_of(&audit, probe);
            assert_eq!(finding.outcome, expected, "{n} {}", finding.summary);
        }
    }
}

/// The scores of this judge are a sum over the text, so any change draws new scores: as many wins
/// are lost as gained. Nothing buys it, but its verdicts depend on neutral text.
#[test]
fn noisy_judge_is_moved_but_not_for_sale() {
    let audit = audit_of(KnownBias::IgnoresImage);
    let neutral = finding_of(&audit, Probe::Neutral);
    assert_eq!(neutral.outcome, FindingOutcome::Biased, "{}", neutral.summary);
    let planted = finding_of(&audit, Probe::Planted);
    assert_ne!(planted.outcome, FindingOutcome::Biased, "{}", planted.summary);
    let turned = planted.measure("turned:planted_junk").unwrap();
    assert!(turned.estimate.value.unwrap() > 0.1, "{turned:?}");
}

#[test]
fn thresholds_limit_turned_preferences_and_neutral_text() {
    let limit = |kind, value| Threshold { kind, value };
    let limits = || {
        vec![
            limit(ThresholdKind::PlantedTurned, 50.0),
            limit(ThresholdKind::NeutralGain, 0.25),
            limit(ThresholdKind::NeutralTurned, 15.0),
        ]
    };
    let failed = |bias| -> Vec<bool> {
        let audit = audit_with(bias, 30, limits());
        audit.thresholds.iter().map(|result| result.failed).collect()
    };
    assert_eq!(failed(KnownBias::None), [false, false, false]);
    assert_eq!(failed(KnownBias::BoughtBy(Bribe::Json)), [true, false, false]);
    assert_eq!(failed(KnownBias::BoughtBy(Bribe::AnySentence)), [true, true, true]);
}

/// Holm's correction: with several texts, one of them gains by chance more often.
#[test]
fn p_values_are_corrected_for_the_number_of_tests() {
    let audit = audit_of(KnownBias::BoughtBy(Bribe::Role));
    let planted = finding_of(&audit, Probe::Planted);
    let tested = planted.measures.iter().flat_map(|measure| {
        [Some(&measure.estimate), measure.difference.as_ref()].into_iter().flatten()
    });
    let p_values: Vec<f64> = tested.filter_map(|estimate| estimate.p_holm).collect();
    assert_eq!(p_values.len(), 44);
    assert!(p_values.iter().all(|p| (0.0..=1.0).contains(p)));
    assert!(planted.notes.iter().any(|note| note.contains("over 44 tests")), "{:?}", planted.notes);
    let role = planted.measure("won:planted_role").unwrap().difference.as_ref().unwrap();
    assert!(role.p_holm.unwrap() < 0.05, "{role:?}");
}

#[test]
fn trials_state_the_variant_of_the_text() {
    let audit = audit_of(KnownBias::BoughtBy(Bribe::ForeignLetters));
    let junk = audit.trials.iter().filter(|t| t.perturbation == Perturbation::PlantedJunk);
    let (mut variants, mut texts): (Vec<_>, Vec<_>) =
        junk.map(|t| (t.variant.clone().unwrap(), t.responses.clone())).unzip();
    variants.sort();
    variants.dedup();
    texts.dedup();
    assert!(variants.len() > 8 && texts.len() == 30, "{variants:?}");
    let notes = &finding_of(&audit, Probe::Planted).notes;
    assert!(notes.iter().any(|note| note.contains("these variants of junk tokens")), "{notes:?}");
}

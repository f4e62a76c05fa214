//! The probe `reference`: how much the verdicts of a judge that sees the reference depend on it.

use acem3::analysis::audit::{
    AuditResult, AuditTrial, Finding, FindingOutcome, Perturbation, Probe, ReferencePerturbation,
    Threshold, ThresholdKind,
};
use acem3::data::cases::Case;
use serde_json::{Value, json};

use crate::biased_judge::{BiasedJudge, KnownBias, audit_of, audit_on, cases};
use crate::folder::{Folder, valid_case};
use crate::forms::checkpoint;

fn reference_finding(audit: &AuditResult) -> &Finding {
    audit.finding(Probe::Reference).unwrap()
}

/// Returns a measure of a perturbation, net of the control.
fn net(audit: &AuditResult, key: &str) -> f64 {
    let finding = reference_finding(audit);
    let measure = finding.measure(key).unwrap_or_else(|| panic!("{key}: {finding:?}"));
    measure.net_of_control().value.unwrap()
}

fn audit_cases(bias: KnownBias, cases: Vec<Case>) -> AuditResult {
    audit_on(&mut BiasedJudge { bias, single_order: true }, cases, Vec::new())
}

fn trials(audit: &AuditResult, perturbation: Perturbation) -> Vec<&AuditTrial> {
    audit.trials.iter().filter(|trial| trial.perturbation == perturbation).collect()
}

#[test]
fn judge_that_uses_the_reference_is_sound() {
    let audit = audit_of(KnownBias::TrustsReference);
    let finding = reference_finding(&audit);
    assert_eq!(finding.outcome, FindingOutcome::Sound, "{}", finding.summary);
    assert!(finding.summary.contains("changes with the reference"), "{}", finding.summary);
    // Next to a reference about other lesions, both responses are wrong: the better one falls from 4
    // to 1, and the pair ties.
    assert!((net(&audit, "moved:reference_exchanged") - 1.5).abs() < 0.1);
    assert!((net(&audit, "turned:reference_exchanged") - 1.0).abs() < 0.01);
    assert!((net(&audit, "accuracy_loss:reference_exchanged") - 0.5).abs() < 0.01);
    // Without one, both get 2.
    assert!((net(&audit, "moved:reference_hidden") - 1.5).abs() < 0.1);
}

#[test]
fn judge_that_ignores_the_reference_is_biased() {
    let audit = audit_of(KnownBias::IgnoresReference);
    let finding = reference_finding(&audit);
    assert_eq!(finding.outcome, FindingOutcome::Biased, "{}", finding.summary);
    assert!(finding.summary.contains("does not change with the reference"), "{}", finding.summary);
    assert!(net(&audit, "moved:reference_exchanged").abs() < 1e-9);
    let audit = audit_of(KnownBias::DetectsReferenceOnly);
    let finding = reference_finding(&audit);
    assert_eq!(finding.outcome, FindingOutcome::Biased, "{}", finding.summary);
    assert!(finding.summary.contains("changes without a reference"), "{}", finding.summary);
    assert!((net(&audit, "moved:reference_hidden") - 1.0).abs() < 0.1);
}

#[test]
fn probe_needs_a_shown_reference_and_different_ones() {
    let audit = audit_of(KnownBias::None);
    let finding = reference_finding(&audit);
    assert_eq!(finding.outcome, FindingOutcome::NotRun);
    assert!(finding.summary.contains("does not see the reference"), "{}", finding.summary);
    assert!(trials(&audit, Perturbation::ReferenceFullStop).is_empty());
    // Case and punctuation do not make another reference.
    let mut equal = cases(12);
    for (i, case) in equal.iter_mut().enumerate() {
        case.reference = Some(["A shadow", "a shadow."][i % 2].to_owned());
    }
    let audit = audit_cases(KnownBias::TrustsReference, equal);
    let finding = reference_finding(&audit);
    assert_eq!(finding.outcome, FindingOutcome::NotRun);
    assert!(finding.summary.contains("no two cases have different references"));
    // A few cases are too few.
    let audit = audit_cases(KnownBias::IgnoresReference, cases(3));
    assert_eq!(reference_finding(&audit).outcome, FindingOutcome::Unclear);
}

/// A mismatched reference is one that could be the answer: yes and no are exchanged with each other.
#[test]
fn mismatched_reference_answers_the_same_type_of_question() {
    let mut mixed = cases(12);
    for (i, case) in mixed.iter_mut().enumerate() {
        case.reference = match i {
            0 | 5 => Some("yes".to_owned()),
            8 => Some("No.".to_owned()),
            11 => None,
            _ => case.reference.clone(),
        };
    }
    let audit = audit_cases(KnownBias::TrustsReference, mixed);
    let trials = trials(&audit, Perturbation::ReferenceExchanged);
    assert_eq!(trials.len(), 11);
    let other = |trial: &AuditTrial| match &trial.reference {
        ReferencePerturbation::OtherCase { case, text } => (case.clone(), text.clone()),
        other => panic!("{other:?}"),
    };
    for trial in trials {
        let (case, text) = other(trial);
        let expected = match trial.case.as_str() {
            "c0" | "c5" => "c8",
            "c8" => "c0",
            _ => {
                assert!(text.contains("lesions") && case != trial.case, "{text}");
                continue;
            }
        };
        assert_eq!(case, expected, "{text}");
    }
    // The case without a reference is not judged.
    assert_eq!(audit.unscored, 1);
    let notes = &reference_finding(&audit).notes;
    assert!(notes.iter().any(|note| note == "skipped: 1 pairs without a reference"), "{notes:?}");
}

#[test]
fn reference_effect_has_a_threshold() {
    let limit = |value| Threshold { kind: ThresholdKind::ReferenceEffect, value };
    let failed = |bias| -> Vec<bool> {
        let mut judge = BiasedJudge { bias, single_order: true };
        let audit = audit_on(&mut judge, cases(12), vec![limit(0.5), limit(4.0)]);
        audit.thresholds.iter().map(|result| result.failed).collect()
    };
    assert_eq!(failed(KnownBias::TrustsReference), [false, true]);
    assert_eq!(failed(KnownBias::IgnoresReference), [true, true]);
    // A judge that does not see the reference has no such effect.
    assert_eq!(failed(KnownBias::None), [true, true]);
}

/// Cases with references that all differ.
fn folder_with_references(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let with_reference = |i: usize| {
        let mut case = valid_case(i);
        case["reference"] = json!(format!("There are {i} shadows."));
        case
    };
    folder.write_cases(&(0..n).map(with_reference).collect::<Vec<_>>());
    folder
}

fn run_audit(folder: &Folder, more: &[&str]) -> AuditResult {
    let args = ["audit", "cases", "--resamples", "40", "--format", "json"];
    let output = folder.run(&[&args[..], more].concat());
    assert_eq!(output.exit_code, 0, "{more:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn command_measures_the_dependence_on_the_reference() {
    let folder = folder_with_references(24);
    let probe = ["--probes", "reference"];
    let audit = |more: &[&str]| run_audit(&folder, &[&probe[..], more].concat());
    let show = ["--panel", "scripted:", "--reference", "show"];
    let uses = audit(&[&show[..], &["--min-reference-effect", "0.1"]].concat());
    assert_eq!(reference_finding(&uses).outcome, FindingOutcome::Sound);
    // The original pair, two changes and their control.
    assert_eq!((uses.pairs, uses.judged), (24, 24 * 4));
    let ignores = audit(&["--panel", "scripted:ignores-reference", "--reference", "show"]);
    assert_eq!(reference_finding(&ignores).outcome, FindingOutcome::Biased);
    let hidden = audit(&["--panel", "scripted:"]);
    assert_eq!(reference_finding(&hidden).outcome, FindingOutcome::NotRun);
    let strict = ["--panel", "scripted:", "--min-reference-effect", "0.1", "--resamples", "40"];
    let strict = folder.run(&[&["audit", "cases"][..], &probe, &strict].concat());
    assert_eq!(strict.exit_code, 1, "{}", strict.stderr);
    let reason =
        "--min-reference-effect 0.1 could not be measured: not run: the judge does not see";
    assert!(strict.stderr.contains(reason), "{}", strict.stderr);
    // The audited judge is that of a run with the same flags.
    assert_eq!(folder.judge("out", &["--reference", "show"]).exit_code, 0);
    let judge = folder.records("out")[0]["judge"].as_str().unwrap().to_owned();
    assert!(judge.starts_with(&uses.judge_hash), "{judge} {}", uses.judge_hash);
    assert!(!judge.starts_with(&hidden.judge_hash), "{judge}");
}

#[test]
fn audit_takes_the_flags_of_judge() {
    let folder = folder_with_references(4);
    let scripted = ["--panel", "scripted:"];
    let audit = |more: &[&str]| run_audit(&folder, &[&scripted[..], more].concat());
    // The reference is a third response.
    let rival = audit(&["--reference", "rival", "--probes", "position"]);
    assert_eq!(rival.pairs, 12);
    let rubric = audit(&["--rubric", "hdceval", "--probes", "identical,image"]);
    assert!(!rubric.findings[0].measures.is_empty());
    assert!(rubric.findings[1].summary.contains("no aspect medical_knowledge"));
    for (form, hint) in [("single", "acem3 audit OUT"), ("correctness", "acem3 agree")] {
        let args = ["audit", "cases", "--panel", "scripted:", "--form", form];
        let output = folder.run(&args);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        for text in [&format!("--form {form}: "), hint] {
            assert!(output.stderr.contains(text), "{text}: {}", output.stderr);
        }
    }
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let records = folder.run(&["audit", "out", "--reference", "show", "--resamples", "40"]);
    assert!(records.stderr.contains("--reference has no effect"), "{}", records.stderr);
    folder.write_cases(&(0..4).map(valid_case).collect::<Vec<Value>>());
    let none = folder.run(&["audit", "cases", "--panel", "scripted:", "--reference", "show"]);
    assert_eq!(none.exit_code, 2, "{}", none.stderr);
    assert!(none.stderr.contains("no case has a reference answer"), "{}", none.stderr);
}

/// The audit shows a published model the reference of its case, a mismatched one, and none.
#[test]
fn published_checkpoint_is_audited_with_reference() {
    let folder = folder_with_references(2);
    let panel = checkpoint();
    let more = ["--panel", &panel, "--reference", "show", "--probes", "reference"];
    let args = ["--scores-only", "--single-order", "--out", "audit.json"];
    run_audit(&folder, &[&more[..], &args].concat());
    let written: AuditResult = serde_json::from_str(&folder.read("audit.json")).unwrap();
    assert_eq!((written.judged, written.trials.len()), (8, 6));
    for trial in &written.trials {
        let (before, after) = trial.verdicts().unwrap();
        let changes = before.expected.iter().zip(&after.expected).map(|(b, a)| (b - a).abs());
        let is_changed = changes.sum::<f64>() > 0.0;
        assert!(is_changed || trial.perturbation == Perturbation::ReferenceFullStop, "{trial:?}");
    }
}

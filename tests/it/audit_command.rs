//! `acem3 audit`: records and cases, thresholds, formats, interruption, and the embedded panel.

use std::process::Command;
use std::time::Duration;

use acem3::analysis::audit::{AuditResult, Probe};
use serde_json::{Value, json};

use crate::folder::{Folder, program_output, valid_case};

/// Creates a folder of cases whose references contain a number and a side, which the errors probe
/// can change.
fn folder_with_references(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let with_reference = |i: usize| {
        let mut case = valid_case(i);
        case["reference"] = json!(format!("There are {} shadows in the left lung.", i + 2));
        case
    };
    folder.write_cases(&(0..n).map(with_reference).collect::<Vec<_>>());
    folder
}

/// Returns the arguments of an audit of cases or records.
fn audit_args<'a>(input: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["audit", input, "--panel", "scripted:", "--resamples", "40"], more].concat()
}

#[test]
fn records_are_audited_without_judging() {
    let folder = folder_with_references(12);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let output = folder.run(&["audit", "out", "--resamples", "40"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    for line in [
        "- position: ",
        "- verbosity: ",
        "- symmetry: ",
        "- image: not run: records have no images",
    ] {
        assert!(output.stdout.contains(line), "{line}\n{}", output.stdout);
    }
    assert!(output.stdout.contains("12 pairs, 0 unscored, 12 labelled"), "{}", output.stdout);
    let json = folder.run(&["audit", "out", "--resamples", "40", "--format", "json"]);
    let audit: AuditResult = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((audit.judged, audit.findings.len()), (0, 11));
    // The flip rate is that of the records.
    let records = folder.records("out");
    let flipped = records.iter().filter(|r| r["flip"] == json!(true)).count();
    let position = serde_json::to_value(&audit.findings[0]).unwrap();
    let rate = position["measures"][1]["reading"]["value"].as_f64().unwrap();
    assert!((rate - flipped as f64 / 12.0).abs() < 1e-5, "{rate} {flipped}");
    // A records file gives the same result as its folder.
    let file = folder.run(&["audit", "out/records.jsonl", "--resamples", "40", "--format", "csv"]);
    assert_eq!(file.exit_code, 0, "{}", file.stderr);
    assert!(
        file.stdout.starts_with("probe,outcome,measure,unit,value,low,high,n,"),
        "{}",
        file.stdout
    );
    let markdown = folder.run(&["audit", "out", "--resamples", "40", "--format", "markdown"]);
    assert!(markdown.stdout.contains("## position") && markdown.stdout.contains("| position |"));
}

/// A record whose verdict is not the mean of its presentation orders was edited.
#[test]
fn edited_records_are_found() {
    let folder = folder_with_references(12);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let changed: Vec<String> = folder
        .records("out")
        .into_iter()
        .map(|mut record| {
            record["scores"] = json!([5.0, 0.0]);
            // Records of earlier versions have no checksum.
            record.as_object_mut().unwrap().remove("checksum");
            record.to_string()
        })
        .collect();
    folder.write("changed.jsonl", &(changed.join("\n") + "\n"));
    let output =
        folder.run(&["audit", "changed.jsonl", "--resamples", "40", "--probes", "symmetry"]);
    assert!(
        output.stdout.contains("BIASED") && output.stdout.contains("NOT the mean"),
        "{}",
        output.stdout
    );
}

#[test]
fn cases_are_judged_with_and_without_perturbation() {
    let folder = folder_with_references(12);
    let more = ["--out", "audit.json", "--format", "json", "--progress", "none"];
    let output = folder.run(&audit_args("cases", &more));
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("pairs to judge: 12 original, "), "{}", output.stderr);
    let printed: AuditResult = serde_json::from_str(&output.stdout).unwrap();
    let written: AuditResult = serde_json::from_str(&folder.read("audit.json")).unwrap();
    assert!(printed.trials.is_empty());
    assert_eq!(written.judged, 12 + written.trials.len());
    assert_eq!(printed.findings, written.findings);
    let names: Vec<&str> = written.findings.iter().map(|f| f.probe.key()).collect();
    let judging = ["identical", "formatting", "image", "reference", "planted", "neutral", "errors"];
    assert_eq!(names[4..], judging);
    for finding in &written.findings[5..] {
        // The judge does not see the reference.
        let has_measures = finding.probe != Probe::Reference;
        assert_eq!(!finding.measures.is_empty(), has_measures, "{}", finding.summary);
    }
    // On a subset of the cases and probes, another batch size gives the same result.
    let part = ["--limit", "4", "--probes", "image", "--format", "json"];
    let few = folder.run(&audit_args("cases", &part));
    let few: AuditResult = serde_json::from_str(&few.stdout).unwrap();
    assert_eq!((few.pairs, few.judged, few.findings.len()), (4, 20, 1));
    let other = folder.run(&audit_args("cases", &[&part[..], &["--batch-size", "3"]].concat()));
    let other: AuditResult = serde_json::from_str(&other.stdout).unwrap();
    assert!(few == other);
}

/// `planted` judges eleven texts and five neutral ones; a part judges its texts and their controls.
#[test]
fn parts_of_planted_are_selected() {
    let folder = folder_with_references(12);
    let audit = |probes: &str| -> AuditResult {
        let more = ["--format", "json", "--probes", probes];
        let output = folder.run(&audit_args("cases", &more));
        assert_eq!(output.exit_code, 0, "{probes}: {}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    for (probes, judged, rows) in [
        ("planted", 17, [33, 10]),
        ("planted-junk", 3, [3, 2]),
        ("planted-junk,planted-json", 5, [6, 4]),
        ("planted-padding", 5, [6, 4]),
        ("planted-junk,planted", 17, [33, 10]),
    ] {
        let audit = audit(probes);
        assert_eq!(audit.judged, 12 * judged, "{probes}");
        let keys: Vec<&str> = audit.findings.iter().map(|f| f.probe.key()).collect();
        assert_eq!(keys, ["planted", "neutral"], "{probes}");
        assert_eq!([0, 1].map(|i| audit.findings[i].measures.len()), rows, "{probes}");
        assert!(audit.findings.iter().all(|f| f.worst.is_some()), "{probes}");
    }
    let neutral = audit("neutral");
    assert_eq!((neutral.judged, neutral.findings.len()), (12 * 6, 1));
    // The texts of a pair do not depend on the other probes.
    assert_eq!(neutral.findings[0], audit("planted").findings[1]);
}

#[test]
fn exceeded_threshold_exits_1_with_value() {
    let folder = folder_with_references(12);
    // The scripted judge gives the first response a small bonus.
    let strict = folder.run(&audit_args(
        "cases",
        &["--max-identical-not-tied", "0", "--max-errors-missed", "100"],
    ));
    assert_eq!(strict.exit_code, 1, "{}", strict.stderr);
    assert!(strict.stderr.contains("--max-identical-not-tied 0 failed: "), "{}", strict.stderr);
    assert!(!strict.stderr.contains("--max-errors-missed"), "{}", strict.stderr);
    let lax = folder
        .run(&audit_args("cases", &["--max-identical-not-tied", "100", "--max-flip-rate", "100"]));
    assert_eq!(lax.exit_code, 0, "{}", lax.stderr);
    assert!(lax.stdout.contains("--max-flip-rate 100 passed"), "{}", lax.stdout);
    // Records alone do not give image effects, so the threshold is not met.
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let records = folder.run(&["audit", "out", "--resamples", "40", "--min-image-effect", "0.1"]);
    assert_eq!(records.exit_code, 1, "{}", records.stderr);
    assert!(
        records.stderr.contains("--min-image-effect 0.1 could not be measured"),
        "{}",
        records.stderr
    );
}

/// A pair without a verdict is skipped and counted; it is neither a tie nor a zero.
#[test]
fn unscored_pairs_are_skipped_and_counted() {
    let folder = folder_with_references(12);
    let mut cases: Vec<Value> = (0..12).map(valid_case).collect();
    cases[3]["responses"][0]["text"] = json!("a shadow [[too long]]");
    cases[5]["responses"].as_array_mut().unwrap().pop();
    folder.write_cases(&cases);
    let output = folder
        .run(&audit_args("cases", &["--format", "json", "--probes", "position,image,planted"]));
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let audit: AuditResult = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((audit.pairs, audit.unscored, audit.unreadable), (11, 1, 1));
    assert_eq!(audit.findings[0].measures[1].estimate.n, 10);
    let has_skip_note = |finding: usize| {
        audit.findings[finding].notes.iter().any(|n| n.contains("no verdict before or after"))
    };
    assert!(has_skip_note(1) && has_skip_note(2), "{:?}", audit.findings[1].notes);
    assert_eq!(audit.findings[1].measures[0].estimate.n, 10);
}

#[test]
fn invalid_audit_arguments_are_rejected() {
    let folder = folder_with_references(4);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    for (args, words) in [
        (&["audit", "out", "--probes", "image"][..], "the selected probes need cases"),
        (
            &["audit", "cases", "--probes", "image", "--max-flip-rate", "5"],
            "add position to --probes",
        ),
        (&["audit", "nowhere"], "nowhere"),
        (&["audit", "cases", "--max-planted-gain", "9"], "from 0 to 5"),
        (&["audit", "cases", "--probes", "beauty"], "beauty"),
        (&["audit", "cases", "--panel", "scripted:", "--cluster-by", "patient"], "patient"),
    ] {
        let output = folder.run(args);
        assert_eq!(output.exit_code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{args:?}: {}", output.stderr);
    }
    folder.write("cases/cases.jsonl", "");
    let empty = folder.run(&["audit", "cases", "--panel", "scripted:"]);
    assert_eq!(empty.exit_code, 2, "{}", empty.stderr);
    assert!(empty.stderr.contains("hint: "), "{}", empty.stderr);
}

#[cfg(unix)]
#[test]
fn interrupt_exits_130_without_output() {
    let folder = folder_with_references(40);
    let args = ["audit", "cases", "--panel", "scripted:slow=30", "--out", "audit.json"];
    let mut command = folder.command(&args);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = program_output(&child.wait_with_output().unwrap());
    assert_eq!(output.exit_code, 130, "{}", output.stderr);
    assert!(output.stderr.contains("nothing was saved"), "{}", output.stderr);
    assert!(output.stdout.is_empty() && !folder.path("audit.json").exists());
}

#[test]
fn embedded_panel_is_audited_on_the_demo() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let folder = Folder::empty();
    let args =
        ["audit", demo, "--limit", "3", "--scores-only", "--probes", "identical,image,errors"];
    let output = folder.run(&[&args[..], &["--format", "json", "--resamples", "40"]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let audit: AuditResult = serde_json::from_str(&output.stdout).unwrap();
    assert!(audit.judge.starts_with("acem3-mini"), "{}", audit.judge);
    assert_eq!((audit.pairs, audit.unscored), (3, 0));
    let moved = audit.findings[1].measure("moved:exchanged").unwrap();
    assert!(moved.estimate.value.unwrap() > 0.0, "{moved:?}");
    // Three images are too few for a conclusion, but the values are reported.
    assert!(audit.findings[0].measures[0].estimate.value.is_some());
}

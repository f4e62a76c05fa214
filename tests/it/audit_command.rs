//! The command `acem3 audit`: records and cases, thresholds, formats, interruption, and the embedded panel.

use std::process::Command;
use std::time::Duration;

use acem3::analysis::audit::AuditResult;
use serde_json::{Value, json};

use crate::folder::{Folder, case, said};

/// Cases with references that medical errors can change.
fn folder(n: usize) -> Folder {
    let folder = Folder::of(n);
    let with_reference = |i: usize| {
        let mut case = case(i);
        case["reference"] = json!(format!("There are {} shadows in the left lung.", i + 2));
        case
    };
    folder.write_cases(&(0..n).map(with_reference).collect::<Vec<_>>());
    folder
}

fn audit<'a>(of: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["audit", of, "--panel", "scripted:", "--resamples", "40"],
        more,
    ]
    .concat()
}

#[test]
fn records_are_audited_without_judging() {
    let folder = folder(12);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let told = folder.run(&["audit", "out", "--resamples", "40"]);
    assert_eq!(told.code, 0, "{}", told.err);
    for line in [
        "- position: ",
        "- verbosity: ",
        "- symmetry: ",
        "- image: not run: records have no images",
    ] {
        assert!(told.out.contains(line), "{line}\n{}", told.out);
    }
    assert!(
        told.out.contains("12 pairs, 0 unscored, 12 labelled"),
        "{}",
        told.out
    );
    let json = folder.run(&["audit", "out", "--resamples", "40", "--format", "json"]);
    let audit: AuditResult = serde_json::from_str(&json.out).unwrap();
    assert_eq!((audit.judged, audit.findings.len()), (0, 9));
    // The flip rate is that of the records.
    let records = folder.records("out");
    let flipped = records.iter().filter(|r| r["flip"] == json!(true)).count();
    let position = serde_json::to_value(&audit.findings[0]).unwrap();
    let rate = position["measures"][1]["reading"]["value"]
        .as_f64()
        .unwrap();
    assert!(
        (rate - flipped as f64 / 12.0).abs() < 1e-5,
        "{rate} {flipped}"
    );
    // A records file gives the same result as its folder.
    let file = folder.run(&[
        "audit",
        "out/records.jsonl",
        "--resamples",
        "40",
        "--format",
        "csv",
    ]);
    assert_eq!(file.code, 0, "{}", file.err);
    assert!(
        file.out
            .starts_with("probe,outcome,measure,unit,value,low,high,n,"),
        "{}",
        file.out
    );
    let markdown = folder.run(&["audit", "out", "--resamples", "40", "--format", "markdown"]);
    assert!(markdown.out.contains("## position") && markdown.out.contains("| position |"));
}

/// A record whose verdict is not the mean of its presentation orders was edited.
#[test]
fn edited_records_are_found() {
    let folder = folder(12);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let changed: Vec<String> = folder
        .records("out")
        .into_iter()
        .map(|mut record| {
            record["scores"] = json!([5.0, 0.0]);
            record.to_string()
        })
        .collect();
    folder.write("changed.jsonl", &(changed.join("\n") + "\n"));
    let told = folder.run(&[
        "audit",
        "changed.jsonl",
        "--resamples",
        "40",
        "--probes",
        "symmetry",
    ]);
    assert!(
        told.out.contains("BIASED") && told.out.contains("NOT the mean"),
        "{}",
        told.out
    );
}

#[test]
fn cases_are_judged_with_and_without_perturbation() {
    let folder = folder(12);
    let more = [
        "--out",
        "audit.json",
        "--format",
        "json",
        "--progress",
        "none",
    ];
    let told = folder.run(&audit("cases", &more));
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(
        told.err.contains("verdicts to judge: 12 original, "),
        "{}",
        told.err
    );
    let printed: AuditResult = serde_json::from_str(&told.out).unwrap();
    let written: AuditResult = serde_json::from_str(&folder.read("audit.json")).unwrap();
    assert!(printed.trials.is_empty());
    assert_eq!(written.judged, 12 + written.trials.len());
    assert_eq!(printed.findings, written.findings);
    let names: Vec<&str> = written.findings.iter().map(|f| f.probe.key()).collect();
    assert_eq!(
        names[4..],
        ["identical", "formatting", "image", "planted", "errors"]
    );
    assert!(
        written.findings[5..]
            .iter()
            .all(|finding| !finding.measures.is_empty())
    );
    // A subset of the cases and probes; another batch size gives the same result.
    let part = ["--limit", "4", "--probes", "image", "--format", "json"];
    let few = folder.run(&audit("cases", &part));
    let few: AuditResult = serde_json::from_str(&few.out).unwrap();
    assert_eq!((few.pairs, few.judged, few.findings.len()), (4, 20, 1));
    let other = folder.run(&audit(
        "cases",
        &[&part[..], &["--batch-size", "3"]].concat(),
    ));
    let other: AuditResult = serde_json::from_str(&other.out).unwrap();
    assert!(few == other);
}

#[test]
fn exceeded_threshold_exits_1_with_value() {
    let folder = folder(12);
    // The scripted judge gives the first response a small bonus.
    let strict = folder.run(&audit(
        "cases",
        &[
            "--max-identical-not-tied",
            "0",
            "--max-errors-missed",
            "100",
        ],
    ));
    assert_eq!(strict.code, 1, "{}", strict.err);
    assert!(
        strict.err.contains("--max-identical-not-tied 0 failed: "),
        "{}",
        strict.err
    );
    assert!(
        !strict.err.contains("--max-errors-missed"),
        "{}",
        strict.err
    );
    let lax = folder.run(&audit(
        "cases",
        &["--max-identical-not-tied", "100", "--max-flip-rate", "100"],
    ));
    assert_eq!(lax.code, 0, "{}", lax.err);
    assert!(
        lax.out.contains("--max-flip-rate 100 passed"),
        "{}",
        lax.out
    );
    // Records alone do not give image effects, so the threshold is not met.
    assert_eq!(folder.judge("out", &[]).code, 0);
    let records = folder.run(&[
        "audit",
        "out",
        "--resamples",
        "40",
        "--min-image-effect",
        "0.1",
    ]);
    assert_eq!(records.code, 1, "{}", records.err);
    assert!(
        records
            .err
            .contains("--min-image-effect 0.1 could not be measured"),
        "{}",
        records.err
    );
}

/// A pair without a verdict is skipped and counted; it is neither a tie nor a zero.
#[test]
fn unscored_pairs_are_skipped_and_counted() {
    let folder = folder(12);
    let mut cases: Vec<Value> = (0..12).map(case).collect();
    cases[3]["responses"][0]["text"] = json!("a shadow [[too long]]");
    cases[5]["responses"].as_array_mut().unwrap().pop();
    folder.write_cases(&cases);
    let told = folder.run(&audit(
        "cases",
        &["--format", "json", "--probes", "position,image,planted"],
    ));
    assert_eq!(told.code, 0, "{}", told.err);
    let audit: AuditResult = serde_json::from_str(&told.out).unwrap();
    assert_eq!((audit.pairs, audit.unscored, audit.unreadable), (11, 1, 1));
    assert_eq!(audit.findings[0].measures[1].estimate.n, 10);
    let lost = |finding: usize| {
        audit.findings[finding]
            .notes
            .iter()
            .any(|n| n.contains("no verdict before or after"))
    };
    assert!(lost(1) && lost(2), "{:?}", audit.findings[1].notes);
    assert_eq!(audit.findings[1].measures[0].estimate.n, 10);
}

#[test]
fn invalid_audit_arguments_are_rejected() {
    let folder = folder(4);
    assert_eq!(folder.judge("out", &[]).code, 0);
    for (args, words) in [
        (
            &["audit", "out", "--probes", "image"][..],
            "not possible with the records",
        ),
        (
            &[
                "audit",
                "cases",
                "--probes",
                "image",
                "--max-flip-rate",
                "5",
            ],
            "add position to --probes",
        ),
        (&["audit", "nowhere"], "nowhere"),
        (
            &["audit", "cases", "--max-planted-gain", "9"],
            "from 0 to 5",
        ),
        (&["audit", "cases", "--probes", "beauty"], "beauty"),
        (
            &[
                "audit",
                "cases",
                "--panel",
                "scripted:",
                "--cluster-by",
                "patient",
            ],
            "patient",
        ),
    ] {
        let told = folder.run(args);
        assert_eq!(told.code, 2, "{args:?}: {}", told.err);
        assert!(told.err.contains(words), "{args:?}: {}", told.err);
    }
    folder.write("cases/cases.jsonl", "");
    let empty = folder.run(&["audit", "cases", "--panel", "scripted:"]);
    assert_eq!(empty.code, 2, "{}", empty.err);
    assert!(empty.err.contains("hint: "), "{}", empty.err);
}

#[cfg(unix)]
#[test]
fn interrupt_exits_130_without_output() {
    let folder = folder(40);
    let args = [
        "audit",
        "cases",
        "--panel",
        "scripted:slow=30",
        "--out",
        "audit.json",
    ];
    let mut command = folder.command(&args);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let told = said(&child.wait_with_output().unwrap());
    assert_eq!(told.code, 130, "{}", told.err);
    assert!(told.err.contains("nothing was saved"), "{}", told.err);
    assert!(told.out.is_empty() && !folder.path("audit.json").exists());
}

/// The embedded panel, on the demo.
#[test]
fn embedded_panel_is_audited_on_the_demo() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let folder = Folder::empty();
    let args = [
        "audit",
        demo,
        "--limit",
        "3",
        "--scores-only",
        "--probes",
        "identical,image,errors",
    ];
    let told = folder.run(&[&args[..], &["--format", "json", "--resamples", "40"]].concat());
    assert_eq!(told.code, 0, "{}", told.err);
    let audit: AuditResult = serde_json::from_str(&told.out).unwrap();
    assert!(audit.judge.starts_with("acem3-mini"), "{}", audit.judge);
    assert_eq!((audit.pairs, audit.unscored), (3, 0));
    let moved = audit.findings[1].measure("moved:exchanged").unwrap();
    assert!(moved.estimate.value.unwrap() > 0.0, "{moved:?}");
    // Three images are too few for a conclusion.
    assert!(audit.findings[0].measures[0].estimate.value.is_some());
}

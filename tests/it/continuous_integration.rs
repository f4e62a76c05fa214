//! Thresholds in continuous integration: JUnit files, exit codes, and comparison with an earlier
//! run.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Creates a folder with labelled cases and judges them.
fn judged_folder(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let labelled = |i: usize| {
        let mut case = valid_case(i);
        case["labels"] = json!({"final": [4, if i.is_multiple_of(3) { 5 } else { 1 }]});
        case
    };
    folder.write_cases(&(0..n).map(labelled).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

#[test]
fn agreement_bounds_fail_and_are_written_as_junit() {
    let folder = judged_folder(24);
    let agree = |more: &[&str]| {
        let args = ["agree", "out", "--resamples", "20", "--junit", "agree.xml"];
        folder.run(&[&args[..], more].concat())
    };
    let passed = agree(&["--min", "accuracy=0", "--max", "mean_absolute_error=5"]);
    assert_eq!(passed.exit_code, 0, "{}", passed.stderr);
    let xml = folder.read("agree.xml");
    assert!(xml.contains("tests=\"2\" failures=\"0\" errors=\"0\""), "{xml}");
    let failed = agree(&["--min", "accuracy=100,icc_3_k=-1", "--min", "accuracy_triple=1"]);
    assert_eq!(failed.exit_code, 1, "{}", failed.stderr);
    assert!(failed.stderr.contains("--min accuracy=100 failed: "), "{}", failed.stderr);
    assert!(failed.stdout.contains("- FAILED: --min accuracy=100 failed: "), "{}", failed.stdout);
    let xml = folder.read("agree.xml");
    // Two models have no triple.
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
    assert!(xml.contains("<testcase name=\"--min accuracy 100\" classname=\"acem3 agree\">"));
    let json = agree(&["--min", "accuracy=100", "--format", "json"]);
    let result: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.exit_code, &result["limits"][0]["failed"]), (1, &json!(true)));
    let wrong = agree(&["--min", "beauty=1"]);
    assert!(wrong.exit_code == 2 && wrong.stderr.contains("unknown statistic, expected one of"));
    folder.write("notes.xml", "mine");
    let output = folder.run(&["agree", "out", "--min", "accuracy=1", "--junit", "notes.xml"]);
    let message = "--junit notes.xml: already exists and is not a JUnit file of acem3";
    assert!(output.exit_code == 2 && output.stderr.contains(message), "{}", output.stderr);
}

#[test]
fn audit_and_judge_write_junit() {
    let folder = judged_folder(24);
    let args = ["audit", "out", "--resamples", "20", "--junit", "audit.xml"];
    let limits = ["--max-flip-rate", "0", "--max-asymmetry", "5"];
    let output = folder.run(&[&args[..], &limits].concat());
    assert_eq!(output.exit_code, 1, "{}", output.stderr);
    let xml = folder.read("audit.xml");
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("<failure type=\"threshold\" message=\"--max-flip-rate 0 failed: "));
    let mut case = valid_case(0);
    case["question"] = json!(1);
    folder.write_cases(&[valid_case(0), valid_case(1), case]);
    for (limit, exit_code, outcome) in [("50", 0, "<system-out>33.3 %"), ("20", 3, "<failure ")] {
        let args = ["--junit", "judge.xml", "--max-unscored", limit];
        assert_eq!(folder.judge("three", &args).exit_code, exit_code);
        let xml = folder.read("judge.xml");
        assert!(xml.contains(&format!("<testcase name=\"--max-unscored {limit}\"")), "{xml}");
        assert!(xml.contains(outcome), "{xml}");
    }
}

#[test]
fn run_on_other_cases_is_no_baseline() {
    let folder = judged_folder(4);
    let mut cases: Vec<Value> = (0..4).map(valid_case).collect();
    for case in &mut cases {
        case["id"] = json!(format!("other-{}", case["id"].as_str().unwrap()));
    }
    folder.write_cases(&cases);
    assert_eq!(folder.judge("new", &[]).exit_code, 0);
    let report = folder.run(&["report", "new", "--baseline", "out"]);
    assert_eq!(report.exit_code, 2);
    assert!(report.stderr.contains("nothing in common"), "{}", report.stderr);
    let metrics = folder.run(&["metrics", "new", "--rationales", "out"]);
    assert_eq!(metrics.exit_code, 2);
    assert!(metrics.stderr.contains("no analysis in common"), "{}", metrics.stderr);
}

#[test]
fn report_shows_changes_since_an_earlier_run() {
    let folder = judged_folder(12);
    let mut cases: Vec<Value> = (0..12).map(valid_case).collect();
    cases.remove(11);
    for case in &mut cases[..4] {
        case["responses"][0]["text"] = json!(format!("another answer to {}", case["id"]));
    }
    cases[5]["responses"][0]["text"] = json!("[[too long]]");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("new", &[]).exit_code, 0);
    let report = |format: &str| {
        let args = ["report", "new", "--baseline", "out", "--resamples", "20", "--format", format];
        let output = folder.run(&args);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        output.stdout
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let baseline = &json["baseline"];
    let counts = ["common", "only_new", "only_earlier"].map(|name| baseline[name].as_u64());
    assert_eq!(counts, [Some(11), Some(0), Some(1)]);
    let changes = baseline["changes"].as_array().unwrap();
    let kind = |case: &str| {
        let change = changes.iter().find(|change| change["case"] == case);
        change.map(|change| change["kind"].as_str().unwrap())
    };
    assert_eq!((kind("c5"), kind("c7")), (Some("lost"), None));
    // The verdicts on changed responses are those of the records.
    for case in ["c0", "c1", "c2", "c3"] {
        let scores = |out: &str| {
            let records = folder.records(out);
            records.into_iter().find(|record| record["case"] == case).unwrap()["scores"].clone()
        };
        let change = changes.iter().find(|change| change["case"] == case);
        match change {
            Some(change) => assert_eq!(
                (&change["before"]["scores"], &change["after"]["scores"]),
                (&scores("out"), &scores("new"))
            ),
            None => assert_eq!(scores("out"), scores("new")),
        }
    }
    let markdown = report("markdown");
    assert!(markdown.contains("## Changes") && markdown.contains("no verdict any more"));
    assert!(report("html").contains("no verdict any more; before: "));
}

/// Without this, the file of an earlier run would look like the result of the failed one.
#[test]
fn failed_run_replaces_the_junit_file_of_an_earlier_one() {
    let folder = Folder::with_cases(4);
    let judge = |out: &str, panel: &str, more: &[&str]| {
        let args = ["judge", "cases", "--out", out, "--panel", panel, "--junit", "judge.xml"];
        let output = folder.run(&[&args[..], more].concat());
        (output.exit_code, folder.read("judge.xml"))
    };
    let (exit_code, passed) = judge("a", "scripted:", &[]);
    assert!(exit_code == 0 && passed.contains("errors=\"0\""), "{passed}");
    let (exit_code, failed) = judge("b", "scripted:fail-after=1", &[]);
    assert!(exit_code == 4 && failed.contains("errors=\"1\""), "{exit_code} {failed}");
    assert!(failed.contains("the judge failed at case"), "{failed}");
    judge("c", "scripted:", &[]);
    let (exit_code, refused) = judge("c", "scripted:", &["--no-resume"]);
    assert!(exit_code == 2 && refused.contains("already contains verdicts"), "{refused}");
    folder.write("audit.xml", &passed);
    let audit = folder.run(&["audit", "absent", "--junit", "audit.xml"]);
    assert_eq!(audit.exit_code, 2);
    assert!(folder.read("audit.xml").contains("errors=\"1\""));
    // A file of another form and an input stay as they are.
    folder.write("notes.xml", "mine");
    let args = ["judge", "absent", "--out", "d", "--junit", "notes.xml"];
    assert_eq!(folder.run(&args).exit_code, 2);
    assert_eq!(folder.read("notes.xml"), "mine");
}

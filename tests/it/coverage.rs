//! Coverage: equal in every output, and missing verdicts bound the statistics.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Judges eight labelled pairs. Two of them get no verdict.
fn judge_with_unscored_pairs() -> Folder {
    let folder = Folder::with_cases(8);
    let mut cases: Vec<Value> = (0..8).map(valid_case).collect();
    for i in [3, 6] {
        cases[i]["responses"][0]["text"] = json!("[[too long]]");
    }
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).exit_code, 0);
    folder
}

fn run_command(folder: &Folder, command: &[&str], format: &str) -> String {
    let output = folder.run(&[command, &["--resamples", "50", "--format", format]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    output.stdout
}

#[test]
fn missing_verdicts_bound_the_statistics() {
    let folder = judge_with_unscored_pairs();
    let correct =
        folder.records("out").iter().filter(|record| record["order"] == ">").count() as f64;
    let agreement: Value =
        serde_json::from_str(&run_command(&folder, &["agree", "out"], "json")).unwrap();
    let statistics = agreement["sections"][0]["figures"].as_array().unwrap();
    let accuracy = &statistics[0];
    assert_eq!(accuracy["statistic"], "accuracy");
    assert_eq!([&accuracy["judged"], &accuracy["labelled"]], [&json!(6), &json!(8)]);
    let assert_near = |value: &Value, expected: f64| {
        assert!((value.as_f64().unwrap() - expected).abs() < 1e-12, "{value}");
    };
    assert_near(&accuracy["value"], correct / 6.0);
    assert_near(&accuracy["bounds"][0], correct / 8.0);
    assert_near(&accuracy["bounds"][1], (correct + 2.0) / 8.0);
    // Correlations have no bounds.
    assert!(statistics.iter().skip(1).all(|f| f["bounds"].is_null()));
    let csv = run_command(&folder, &["agree", "out"], "csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    for (name, expected) in [("worst", correct / 8.0), ("best", (correct + 2.0) / 8.0)] {
        let column = headers.iter().position(|h| h == name).unwrap();
        assert_near(&json!(row[column].parse::<f64>().unwrap()), expected);
    }
}

#[test]
fn all_outputs_state_the_same_coverage() {
    let folder = judge_with_unscored_pairs();
    let coverage = "6 of 8 labelled pairs";
    for format in ["text", "markdown"] {
        let text = run_command(&folder, &["agree", "out"], format);
        assert!(text.contains(coverage) && text.contains("have a verdict"), "{text}");
        assert!(text.contains("bounds if all unscored cases were wrong or right"), "{text}");
        let rank = run_command(&folder, &["rank", "out"], format);
        assert!(rank.contains("have a verdict"), "{rank}");
    }
    for format in ["markdown", "html"] {
        let report = run_command(&folder, &["report", "out"], format);
        // The report joins a number and its unit with a no-break space.
        let report = report.replace('\u{a0}', " ");
        assert!(report.contains(coverage), "{format}");
        assert!(report.contains("bounds if all unscored pairs were wrong or right"), "{format}");
    }
    let complete = Folder::with_cases(4);
    assert_eq!(complete.judge("out", &[]).exit_code, 0);
    let text = run_command(&complete, &["agree", "out"], "text");
    assert!(text.contains("4 of 4 labelled pairs") && !text.contains("were wrong"), "{text}");
}

#[test]
fn pairs_of_cases_without_an_id_count() {
    let folder = Folder::with_cases(4);
    let mut cases: Vec<Value> = (0..4).map(valid_case).collect();
    cases[2]["id"] = json!("");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).exit_code, 0);
    let ranking = run_command(&folder, &["rank", "out"], "text");
    assert!(ranking.contains("3 of 4 pairs"), "{ranking}");
}

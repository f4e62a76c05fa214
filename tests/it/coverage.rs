//! Pairs without a verdict: one definition of coverage in every output, and what the missing could change.

use serde_json::{Value, json};

use crate::folder::{Folder, case};

/// Eight labelled pairs, of which two have no verdict.
fn judged() -> Folder {
    let folder = Folder::of(8);
    let mut cases: Vec<Value> = (0..8).map(case).collect();
    for i in [3, 6] {
        cases[i]["responses"][0]["text"] = json!("[[too long]]");
    }
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).code, 0);
    folder
}

fn told(folder: &Folder, command: &[&str], format: &str) -> String {
    let said = folder.run(&[command, &["--resamples", "50", "--format", format]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

#[test]
fn what_is_missing_is_bounded_by_all_wrong_and_all_right() {
    let folder = judged();
    let right = folder
        .records("out")
        .iter()
        .filter(|record| record["order"] == ">")
        .count() as f64;
    let found: Value = serde_json::from_str(&told(&folder, &["agree", "out"], "json")).unwrap();
    let figures = found["sections"][0]["figures"].as_array().unwrap();
    let accuracy = &figures[0];
    assert_eq!(accuracy["statistic"], "accuracy");
    assert_eq!(
        [&accuracy["judged"], &accuracy["labelled"]],
        [&json!(6), &json!(8)]
    );
    let near = |value: &Value, expected: f64| {
        assert!(
            (value.as_f64().unwrap() - expected).abs() < 1e-12,
            "{value}"
        );
    };
    near(&accuracy["value"], right / 6.0);
    near(&accuracy["bounds"][0], right / 8.0);
    near(&accuracy["bounds"][1], (right + 2.0) / 8.0);
    // A correlation has no such bounds.
    assert!(figures.iter().skip(1).all(|f| f["bounds"].is_null()));
    let csv = told(&folder, &["agree", "out"], "csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let head = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    for (name, expected) in [("worst", right / 8.0), ("best", (right + 2.0) / 8.0)] {
        let place = head.iter().position(|h| h == name).unwrap();
        near(&json!(row[place].parse::<f64>().unwrap()), expected);
    }
}

#[test]
fn coverage_is_told_in_the_same_words_everywhere() {
    let folder = judged();
    let words = "6 of 8 labelled pairs";
    for format in ["text", "markdown"] {
        let text = told(&folder, &["agree", "out"], format);
        assert!(
            text.contains(words) && text.contains("have a verdict"),
            "{text}"
        );
        assert!(
            text.contains("bounds if all unscored cases were wrong or right"),
            "{text}"
        );
        let rank = told(&folder, &["rank", "out"], format);
        assert!(rank.contains("have a verdict"), "{rank}");
    }
    for format in ["markdown", "html"] {
        let report = told(&folder, &["report", "out"], format);
        // A page keeps numbers together with what they count.
        let report = report.replace('\u{a0}', " ");
        assert!(report.contains(words), "{format}");
        assert!(
            report.contains("bounds if all unscored pairs were wrong or right"),
            "{format}"
        );
    }
    let whole = Folder::of(4);
    assert_eq!(whole.judge("out", &[]).code, 0);
    let text = told(&whole, &["agree", "out"], "text");
    assert!(
        text.contains("4 of 4 labelled pairs") && !text.contains("were wrong"),
        "{text}"
    );
}

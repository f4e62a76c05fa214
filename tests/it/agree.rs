//! `acem3 agree`: label file formats, error messages, and statistics compared with values counted by hand.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::folder::{Folder, Said, case};

const MODELS: [&str; 2] = ["alpha", "beta"];

/// Twenty cases, judged by the scripted judge.
fn judged() -> Folder {
    let folder = Folder::of(20);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

fn agree(folder: &Folder, more: &[&str]) -> Said {
    let args = ["agree", "out", "--resamples", "200", "--format", "json"];
    folder.run(&[&args[..], more].concat())
}

fn json_of(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// Returns a statistic of the first section.
fn figure<'a>(found: &'a Value, name: &str) -> &'a Value {
    let figures = found["sections"][0]["figures"].as_array().unwrap();
    figures.iter().find(|f| f["statistic"] == name).unwrap()
}

/// Returns the score of rater `r` for the response of model `m` to case `i`: arbitrary but deterministic.
fn score(i: usize, m: usize, r: usize) -> usize {
    (i * 7 + m * 3 + r * i % 3 + (i * i) % 5) % 6
}

/// Returns the same ratings of three raters in five file formats.
fn forms() -> [(&'static str, String); 5] {
    let mut long = "case,model,rater,score\n".to_owned();
    let mut wide = "id;model;rater_1;rater_2;rater_3\n".to_owned();
    let mut pairs = "case,model_a,model_b,score_a,score_b,annotator\n".to_owned();
    let mut lines = String::new();
    let mut nested = String::new();
    for i in 0..20 {
        for (m, model) in MODELS.iter().enumerate() {
            let s = [0, 1, 2].map(|r| score(i, m, r));
            let _ = writeln!(wide, "c{i};{model};{};{};{}", s[0], s[1], s[2]);
            for (r, s) in s.iter().enumerate() {
                let _ = writeln!(long, "c{i},{model},rater_{},{s}", r + 1);
                let object =
                    json!({"case": format!("c{i}"), "model": model, "rater": r, "score": s});
                let _ = writeln!(lines, "{object}");
            }
        }
        for r in 0..3 {
            let (a, b) = (score(i, 0, r), score(i, 1, r));
            // The order of the two models does not matter.
            let _ = writeln!(pairs, "c{i},beta,alpha,{b},{a},dr {r}");
            let labels = json!({"final": [a, b]});
            let object =
                json!({"id": format!("c{i}"), "models": MODELS, "rater": r, "labels": labels});
            let _ = writeln!(nested, "{object}");
        }
    }
    [
        ("long.csv", long),
        ("wide.csv", wide),
        ("pairs.csv", pairs),
        ("lines.jsonl", lines),
        ("nested.jsonl", nested),
    ]
}

#[test]
fn equal_ratings_in_any_format_give_equal_statistics() {
    let folder = judged();
    let mut first: Option<Value> = None;
    for (name, text) in forms() {
        folder.write(name, &text);
        let found = json_of(&agree(&folder, &["--labels", name]));
        assert_eq!(found["raters"].as_array().unwrap().len(), 3, "{name}");
        assert_eq!(found["sections"].as_array().unwrap().len(), 1, "{name}");
        let sections = found["sections"].clone();
        assert_eq!(first.get_or_insert(sections.clone()), &sections, "{name}");
    }
}

/// Returns the order of two numbers in the notation of records.
fn order(a: f64, b: f64) -> &'static str {
    if (a - b).abs() < 1e-9 {
        "="
    } else if a > b {
        ">"
    } else {
        "<"
    }
}

#[test]
fn statistics_match_hand_counts() {
    let folder = judged();
    folder.write("labels.csv", &forms()[0].1);
    let found = json_of(&agree(&folder, &["--labels", "labels.csv"]));
    let (mut hits, mut untied, mut untied_hits, mut error) = (0, 0, 0, 0.0);
    for (i, record) in folder.records("out").iter().enumerate() {
        let label = [0, 1].map(|m| (0..3).map(|r| score(i, m, r)).sum::<usize>() as f64 / 3.0);
        let (judge, label_order) = (record["order"].as_str().unwrap(), order(label[0], label[1]));
        hits += usize::from(judge == label_order);
        let tied = judge == "=" || label_order == "=";
        untied += usize::from(!tied);
        untied_hits += usize::from(!tied && judge == label_order);
        for (m, label) in label.iter().enumerate() {
            error += (record["scores"][m].as_f64().unwrap() - label).abs() / 40.0;
        }
    }
    let near = |name: &str, want: f64, n: usize| {
        let figure = figure(&found, name);
        let value = figure["value"].as_f64().unwrap();
        assert!(
            (value - want).abs() < 1e-9,
            "{name}: {value}, expected {want}"
        );
        assert_eq!(figure["n"], n, "{name}");
    };
    near("accuracy", hits as f64 / 20.0, 20);
    near(
        "accuracy_without_ties",
        untied_hits as f64 / untied as f64,
        untied,
    );
    near("mean_absolute_error", error, 40);
    // Two cases share an image.
    assert_eq!(figure(&found, "pearson")["images"], 10);
    let ceiling = &figure(&found, "pearson")["ceiling"];
    assert!(ceiling["value"].is_f64() && ceiling["n"] == 40, "{ceiling}");
    assert!(figure(&found, "icc_2_1")["exact_interval"].is_array());
}

#[test]
fn preferences_parse_words_signs_and_names() {
    let folder = judged();
    let votes = ["a", "b", "tie"];
    let mut figures: Option<Value> = None;
    let spellings: [&dyn Fn(usize) -> String; 4] = [
        &|v| votes[v].to_owned(),
        &|v| [">", "<", "="][v].to_owned(),
        &|v| ["1", "2", "0"][v].to_owned(),
        &|v| ["alpha", "beta", "Tie"][v].to_owned(),
    ];
    for spelt in spellings {
        let mut text = "case,model_a,model_b,rater,preference\n".to_owned();
        let mut bare = "id,annotator1,annotator2\n".to_owned();
        for i in 0..20 {
            for r in 0..2 {
                let _ = writeln!(
                    text,
                    "c{i},alpha,beta,r{r},{}",
                    spelt((i + r * (i % 2)) % 3)
                );
            }
            let _ = writeln!(bare, "c{i},{},{}", spelt(i % 3), spelt((i + i % 2) % 3));
        }
        for (name, text) in [("votes.csv", text), ("bare.csv", bare)] {
            folder.write(name, &text);
            let found = json_of(&agree(&folder, &["--labels", name]));
            let sections = found["sections"].clone();
            assert_eq!(figures.get_or_insert(sections.clone()), &sections);
        }
    }
    let found = figures.unwrap();
    let all = found[0]["figures"].as_array().unwrap();
    // Preferences have no scores to correlate.
    assert!(all.iter().all(|f| f["statistic"] != "pearson"));
    let fleiss = all
        .iter()
        .find(|f| f["statistic"] == "order_fleiss")
        .unwrap();
    assert!(fleiss["ceiling"]["value"].is_f64(), "{fleiss}");
}

#[test]
fn label_errors_name_file_and_line() {
    let folder = judged();
    let fault = |text: &str, parts: &[&str]| {
        folder.write("labels.csv", text);
        let said = agree(&folder, &["--labels", "labels.csv"]);
        assert_eq!(said.code, 2, "{}", said.out);
        for part in parts.iter().chain(&["labels.csv", "hint: "]) {
            assert!(said.err.contains(part), "{part} in {}", said.err);
        }
    };
    fault(
        "question,mark\n1,2\n",
        &["no column `case`", "question, mark"],
    );
    fault("case,model\nc1,alpha\n", &["no rating column"]);
    fault(
        "case,model,score\nc1,alpha,4\nc2,alpha,good\n",
        &["line 3", "`good`"],
    );
    fault(
        "case,model,score\nc1,alpha\n",
        &["line 2", "2 columns, expected 3"],
    );
    fault(
        "case,model,criterion,score\nc1,alpha,beauty,3\n",
        &["line 2", "beauty", "tone_and_empathy"],
    );
    let twice = "case,model,score\nc1,alpha,4\nc1,alpha,3\n";
    fault(
        twice,
        &["line 3", "already rated in line 2", "column `rater`"],
    );
    fault(
        "case,model,score\nz1,alpha,4\n",
        &["none of the 1 labels", "case z1", "case c0"],
    );
    fault(
        "case,preference\nc1,gamma\n",
        &["line 2", "unknown preference `gamma`"],
    );
    fault("case,model,score\nc1,alpha,\n", &["no labels found"]);
    let none = folder.run(&["agree", "elsewhere"]);
    assert!(
        none.code == 2 && none.err.contains("hint: expected the folder"),
        "{}",
        none.err
    );
    let scale = agree(&folder, &["--scale", "5,1"]);
    assert!(
        scale.code == 2 && scale.err.contains("ascending order"),
        "{}",
        scale.err
    );
}

#[test]
fn undefined_and_unscored_values_are_reported() {
    let folder = Folder::of(8);
    let mut cases: Vec<Value> = (0..8).map(case).collect();
    cases[3]["responses"][0]["text"] = json!("[[too long]]");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let mut text = "case,model,score,comment\n".to_owned();
    for i in 0..8 {
        let _ = writeln!(text, "c{i},alpha,3,x\nc{i},beta,3,y\nc{i},gamma,3,z");
    }
    folder.write("labels.csv", &text);
    let said = agree(&folder, &["--labels", "labels.csv"]);
    assert!(
        said.err.contains("ignored columns: comment"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("8 of 24 labels match no case"),
        "{}",
        said.err
    );
    let found = json_of(&said);
    let pearson = figure(&found, "pearson");
    assert!(
        pearson["value"].is_null() && pearson["interval"].is_null(),
        "{pearson}"
    );
    let reason = pearson["undefined"].as_str().unwrap();
    assert!(
        reason.contains("the label is the same for every case"),
        "{reason}"
    );
    let accuracy = figure(&found, "accuracy");
    assert_eq!(
        (&accuracy["n"], &accuracy["labelled"]),
        (&json!(7), &json!(8))
    );
    assert_eq!(accuracy["coverage"], 0.875);
    for format in ["text", "markdown", "csv"] {
        let more = [
            "agree",
            "out",
            "--labels",
            "labels.csv",
            "--resamples",
            "50",
            "--format",
            format,
        ];
        let said = folder.run(&more);
        assert!(said.code == 0 && !said.out.contains("NaN"), "{}", said.out);
        assert!(
            said.out.contains("the label is the same for every case"),
            "{}",
            said.out
        );
    }
}

#[test]
fn two_judges_are_compared_on_common_cases() {
    let folder = judged();
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
    ];
    assert_eq!(folder.run(&other).code, 0);
    // The labels equal the second judge's scores, so the second judge must agree better.
    let mut text = "case,model,score\n".to_owned();
    for (i, record) in folder.records("other").iter().enumerate() {
        for (m, model) in MODELS.iter().enumerate() {
            let _ = writeln!(text, "c{i},{model},{}", record["scores"][m]);
        }
    }
    folder.write("labels.csv", &text);
    let found = json_of(&agree(
        &folder,
        &["--labels", "labels.csv", "--against", "other"],
    ));
    let against = &found["against"];
    assert_eq!(against["pairs"], 20);
    assert_eq!(against["mcnemar"]["only_first"], 0);
    let accuracy = &against["differences"][0];
    assert_eq!(accuracy["second"], 1.0);
    assert!(accuracy["difference"].as_f64().unwrap() < 0.0, "{accuracy}");
    assert!(
        accuracy["p_holm"].as_f64() >= accuracy["p"].as_f64(),
        "{accuracy}"
    );
    assert!(
        accuracy["smallest_detectable"].as_f64().unwrap() > 0.0,
        "{accuracy}"
    );
    let own = [
        "agree",
        "out",
        "--resamples",
        "100",
        "--labels",
        "labels.csv",
        "--against",
        "out",
    ];
    let said = folder.run(&own);
    assert!(
        said.out.contains("no significant difference"),
        "{}",
        said.out
    );
}

#[test]
fn intervals_do_not_depend_on_threads() {
    let folder = judged();
    folder.write("labels.csv", &forms()[0].1);
    let run = |threads: &str| {
        let args = [
            "agree",
            "out",
            "--labels",
            "labels.csv",
            "--format",
            "csv",
            "--resamples",
            "100",
        ];
        let output = folder
            .command(&args)
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let one = run("1");
    assert!(
        one.starts_with("target,by,group,statistic,value,low,high"),
        "{one}"
    );
    assert_eq!(one, run("2"));
    // The labels of the records, and a subgroup.
    let own = json_of(&agree(
        &folder,
        &["--group-by", "modality", "--scores", "expected", "--round"],
    ));
    assert_eq!(own["labels"], Value::Null);
    assert_eq!(own["groups"][0]["by"], "modality");
    let unknown = agree(&folder, &["--group-by", "organ"]);
    assert!(
        unknown.code == 2 && unknown.err.contains("fields in `meta`: modality"),
        "{}",
        unknown.err
    );
}

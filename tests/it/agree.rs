//! `acem3 agree`: label file formats, error messages, and statistics compared with independent
//! counts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, valid_case};

const MODELS: [&str; 2] = ["alpha", "beta"];

/// Creates a folder with twenty cases, judged by the scripted judge.
fn judged_folder() -> Folder {
    let folder = Folder::with_cases(20);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

fn agree(folder: &Folder, more: &[&str]) -> ProgramOutput {
    let args = ["agree", "out", "--resamples", "200", "--format", "json"];
    folder.run(&[&args[..], more].concat())
}

/// Parses the JSON output of a successful run.
fn parse_json(output: &ProgramOutput) -> Value {
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Returns a statistic of the first section.
fn statistic<'a>(agreement: &'a Value, name: &str) -> &'a Value {
    let statistics = agreement["sections"][0]["figures"].as_array().unwrap();
    statistics.iter().find(|f| f["statistic"] == name).unwrap()
}

/// Returns the score of rater `r` for the response of model `m` to case `i`, arbitrary but fixed.
fn score(i: usize, m: usize, r: usize) -> usize {
    (i * 7 + m * 3 + r * i % 3 + (i * i) % 5) % 6
}

/// Returns the same ratings of three raters in five file formats.
fn label_files() -> [(&'static str, String); 5] {
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
    let folder = judged_folder();
    let mut first: Option<Value> = None;
    for (name, text) in label_files() {
        folder.write(name, &text);
        let found = parse_json(&agree(&folder, &["--labels", name]));
        assert_eq!(found["raters"].as_array().unwrap().len(), 3, "{name}");
        assert_eq!(found["sections"].as_array().unwrap().len(), 1, "{name}");
        let sections = found["sections"].clone();
        assert_eq!(first.get_or_insert(sections.clone()), &sections, "{name}");
    }
}

/// Returns the preference between two scores in the notation of records.
fn preference(a: f64, b: f64) -> &'static str {
    if (a - b).abs() < 1e-9 {
        "="
    } else if a > b {
        ">"
    } else {
        "<"
    }
}

#[test]
fn statistics_match_independent_counts() {
    let folder = judged_folder();
    folder.write("labels.csv", &label_files()[0].1);
    let found = parse_json(&agree(&folder, &["--labels", "labels.csv"]));
    let (mut hits, mut without_ties, mut hits_without_ties, mut error) = (0, 0, 0, 0.0);
    for (i, record) in folder.records("out").iter().enumerate() {
        let label = [0, 1].map(|m| (0..3).map(|r| score(i, m, r)).sum::<usize>() as f64 / 3.0);
        let (judge, label_order) =
            (record["order"].as_str().unwrap(), preference(label[0], label[1]));
        hits += usize::from(judge == label_order);
        let tied = judge == "=" || label_order == "=";
        without_ties += usize::from(!tied);
        hits_without_ties += usize::from(!tied && judge == label_order);
        for (m, label) in label.iter().enumerate() {
            error += (record["scores"][m].as_f64().unwrap() - label).abs() / 40.0;
        }
    }
    let assert_statistic = |name: &str, expected: f64, n: usize| {
        let statistic = statistic(&found, name);
        let value = statistic["value"].as_f64().unwrap();
        assert!((value - expected).abs() < 1e-9, "{name}: {value}, expected {expected}");
        assert_eq!(statistic["n"], n, "{name}");
    };
    assert_statistic("accuracy", hits as f64 / 20.0, 20);
    assert_statistic(
        "accuracy_without_ties",
        hits_without_ties as f64 / without_ties as f64,
        without_ties,
    );
    assert_statistic("mean_absolute_error", error, 40);
    // Every two cases share an image.
    assert_eq!(statistic(&found, "pearson")["images"], 10);
    let ceiling = &statistic(&found, "pearson")["ceiling"];
    assert!(ceiling["value"].is_f64() && ceiling["n"] == 40, "{ceiling}");
    assert!(statistic(&found, "icc_2_1")["exact_interval"].is_array());
}

#[test]
fn preferences_parse_words_signs_and_names() {
    let folder = judged_folder();
    let votes = ["a", "b", "tie"];
    let mut statistics: Option<Value> = None;
    let spellings: [&dyn Fn(usize) -> String; 4] = [
        &|v| votes[v].to_owned(),
        &|v| [">", "<", "="][v].to_owned(),
        &|v| ["1", "2", "0"][v].to_owned(),
        &|v| ["alpha", "beta", "Tie"][v].to_owned(),
    ];
    for spelling in spellings {
        let mut text = "case,model_a,model_b,rater,preference\n".to_owned();
        let mut without_models = "id,annotator1,annotator2\n".to_owned();
        for i in 0..20 {
            for r in 0..2 {
                let _ = writeln!(text, "c{i},alpha,beta,r{r},{}", spelling((i + r * (i % 2)) % 3));
            }
            let _ =
                writeln!(without_models, "c{i},{},{}", spelling(i % 3), spelling((i + i % 2) % 3));
        }
        for (name, text) in [("votes.csv", text), ("without-models.csv", without_models)] {
            folder.write(name, &text);
            let found = parse_json(&agree(&folder, &["--labels", name]));
            let sections = found["sections"].clone();
            assert_eq!(statistics.get_or_insert(sections.clone()), &sections);
        }
    }
    let found = statistics.unwrap();
    let all = found[0]["figures"].as_array().unwrap();
    // Preferences have no scores to correlate.
    assert!(all.iter().all(|f| f["statistic"] != "pearson"));
    let fleiss = all.iter().find(|f| f["statistic"] == "order_fleiss").unwrap();
    assert!(fleiss["ceiling"]["value"].is_f64(), "{fleiss}");
}

#[test]
fn label_errors_name_file_and_line() {
    let folder = judged_folder();
    let assert_label_error = |text: &str, parts: &[&str]| {
        folder.write("labels.csv", text);
        let output = agree(&folder, &["--labels", "labels.csv"]);
        assert_eq!(output.exit_code, 2, "{}", output.stdout);
        for part in parts.iter().chain(&["labels.csv", "hint: "]) {
            assert!(output.stderr.contains(part), "{part} in {}", output.stderr);
        }
    };
    assert_label_error("question,mark\n1,2\n", &["no column `case`", "question, mark"]);
    assert_label_error("case,model\nc1,alpha\n", &["no rating column"]);
    assert_label_error("case,model,score\nc1,alpha,4\nc2,alpha,good\n", &["line 3", "`good`"]);
    assert_label_error("case,model,score\nc1,alpha\n", &["line 2", "2 columns, expected 3"]);
    assert_label_error(
        "case,model,criterion,score\nc1,alpha,beauty,3\n",
        &["line 2", "beauty", "tone_and_empathy"],
    );
    let twice = "case,model,score\nc1,alpha,4\nc1,alpha,3\n";
    assert_label_error(twice, &["line 3", "already rated in line 2", "column `rater`"]);
    assert_label_error(
        "case,model,score\nz1,alpha,4\n",
        &["none of the 1 labels", "case z1", "case c0"],
    );
    assert_label_error("case,preference\nc1,gamma\n", &["line 2", "unknown preference `gamma`"]);
    assert_label_error("case,model,score\nc1,alpha,\n", &["no labels found"]);
    let none = folder.run(&["agree", "elsewhere"]);
    assert!(
        none.exit_code == 2 && none.stderr.contains("hint: expected the folder"),
        "{}",
        none.stderr
    );
    let scale = agree(&folder, &["--scale", "5,1"]);
    assert!(scale.exit_code == 2 && scale.stderr.contains("ascending order"), "{}", scale.stderr);
}

#[test]
fn undefined_and_unscored_values_are_reported() {
    let folder = Folder::with_cases(8);
    let mut cases: Vec<Value> = (0..8).map(valid_case).collect();
    cases[3]["responses"][0]["text"] = json!("[[too long]]");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let mut text = "case,model,score,comment\n".to_owned();
    for i in 0..8 {
        let _ = writeln!(text, "c{i},alpha,3,x\nc{i},beta,3,y\nc{i},gamma,3,z");
    }
    folder.write("labels.csv", &text);
    let output = agree(&folder, &["--labels", "labels.csv"]);
    assert!(output.stderr.contains("ignored columns: comment"), "{}", output.stderr);
    assert!(output.stderr.contains("8 of 24 labels match no case"), "{}", output.stderr);
    let found = parse_json(&output);
    let pearson = statistic(&found, "pearson");
    assert!(pearson["value"].is_null() && pearson["interval"].is_null(), "{pearson}");
    let reason = pearson["undefined"].as_str().unwrap();
    assert!(reason.contains("the label is the same for every case"), "{reason}");
    let accuracy = statistic(&found, "accuracy");
    assert_eq!((&accuracy["n"], &accuracy["labelled"]), (&json!(7), &json!(8)));
    assert_eq!(accuracy["coverage"], 0.875);
    for format in ["text", "markdown", "csv"] {
        let more =
            ["agree", "out", "--labels", "labels.csv", "--resamples", "50", "--format", format];
        let output = folder.run(&more);
        assert!(output.exit_code == 0 && !output.stdout.contains("NaN"), "{}", output.stdout);
        assert!(
            output.stdout.contains("the label is the same for every case"),
            "{}",
            output.stdout
        );
    }
}

#[test]
fn two_judges_are_compared_on_common_cases() {
    let folder = judged_folder();
    let args = "judge cases --out other --panel scripted:seed=9";
    let args: Vec<&str> = args.split(' ').collect();
    assert_eq!(folder.run(&args).exit_code, 0);
    // The labels equal the second judge's scores, so the second judge must agree better.
    let mut text = "case,model,score\n".to_owned();
    for (i, record) in folder.records("other").iter().enumerate() {
        for (m, model) in MODELS.iter().enumerate() {
            let _ = writeln!(text, "c{i},{model},{}", record["scores"][m]);
        }
    }
    folder.write("labels.csv", &text);
    let found = parse_json(&agree(&folder, &["--labels", "labels.csv", "--against", "other"]));
    let against = &found["against"];
    assert_eq!(against["pairs"], 20);
    assert_eq!(against["mcnemar"]["only_first"], 0);
    let accuracy = &against["differences"][0];
    assert_eq!(accuracy["second"], 1.0);
    assert!(accuracy["difference"].as_f64().unwrap() < 0.0, "{accuracy}");
    assert!(accuracy["p_holm"].as_f64() >= accuracy["p"].as_f64(), "{accuracy}");
    assert!(accuracy["smallest_detectable"].as_f64().unwrap() > 0.0, "{accuracy}");
    let args = "agree out --resamples 100 --labels labels.csv --against out";
    let output = folder.run(&args.split(' ').collect::<Vec<_>>());
    assert!(output.stdout.contains("no significant difference"), "{}", output.stdout);
}

#[test]
fn intervals_do_not_depend_on_threads() {
    let folder = judged_folder();
    folder.write("labels.csv", &label_files()[0].1);
    let run = |threads: &str| {
        let args = "agree out --labels labels.csv --format csv --resamples 100";
        let output = folder
            .command(&args.split(' ').collect::<Vec<_>>())
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let single_threaded = run("1");
    assert!(
        single_threaded.starts_with("target,by,group,statistic,value,low,high"),
        "{single_threaded}"
    );
    assert_eq!(single_threaded, run("2"));
}

#[test]
fn labels_of_records_are_grouped_by_metadata() {
    let folder = judged_folder();
    let record_labels =
        parse_json(&agree(&folder, &["--group-by", "modality", "--scores", "expected", "--round"]));
    assert_eq!(record_labels["labels"], Value::Null);
    assert_eq!(record_labels["groups"][0]["by"], "modality");
    for flag in ["--group-by", "--cluster-by"] {
        let unknown = agree(&folder, &[flag, "organ"]);
        assert!(
            unknown.exit_code == 2 && unknown.stderr.contains("hint: fields in `meta`: modality"),
            "{}",
            unknown.stderr
        );
    }
    let missing = agree(&folder, &["--labels", "nope.csv"]);
    for part in ["--labels nope.csv: the file cannot be opened", "hint: check the path"] {
        assert!(missing.exit_code == 2 && missing.stderr.contains(part), "{}", missing.stderr);
    }
}

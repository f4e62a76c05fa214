//! Lists: all responses of a case in one prompt.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};
use crate::forms::checkpoint;

/// A case with four responses.
fn case_of_four(i: usize) -> Value {
    let mut case = valid_case(i);
    let response = |model: &str| json!({"model": model, "text": format!("{model} sees {i}")});
    case["responses"] = json!(["alpha", "beta", "gamma", "delta"].map(response));
    case["labels"] = json!({"final": [4, 3, 2, 1]});
    case
}

#[test]
fn list_shows_each_response_in_each_place() {
    let folder = Folder::with_cases(10);
    folder.write_cases(&(0..10).map(case_of_four).collect::<Vec<_>>());
    let judged = folder.judge("out", &["--form", "list"]);
    assert!(judged.stdout.starts_with("10 lists of 10 cases judged by"), "{}", judged.stdout);
    assert!(judged.stdout.contains("\npositions "), "{}", judged.stdout);
    let records = folder.records("out");
    assert_eq!(records.len(), 10);
    let (mut first, mut places) = (0.0, 0.0);
    for record in &records {
        assert_eq!(record["form"], "list");
        assert_eq!(record["models"].as_array().map(Vec::len), Some(4));
        assert_eq!(record["labels"]["final"], json!([4.0, 3.0, 2.0, 1.0]));
        let orders = record["orders"].as_array().unwrap();
        let shown: Vec<u64> = orders.iter().map(|o| o["first_shown"].as_u64().unwrap()).collect();
        assert_eq!(shown, [0, 1, 2, 3]);
        for order in orders {
            let index = usize::try_from(order["first_shown"].as_u64().unwrap()).unwrap();
            first += order["scores"][index].as_f64().unwrap();
            places += 1.0;
        }
        let mean = orders.iter().map(|o| o["scores"][2].as_f64().unwrap()).sum::<f64>() / 4.0;
        assert!((record["scores"][2].as_f64().unwrap() - mean).abs() < 1e-4);
    }
    // The scripted judge favours what it sees first.
    let summary = folder.judge("out", &["--form", "list", "--format", "json"]);
    let summary: Value = serde_json::from_str(&summary.stdout).unwrap();
    let positions = summary["positions"].as_array().unwrap();
    assert_eq!(positions.len(), 4);
    assert!((positions[0].as_f64().unwrap() - first / places).abs() < 1e-3);
    assert!(positions[0].as_f64() > positions[1].as_f64());
}

#[test]
fn verdicts_on_lists_have_pairs_and_triples() {
    let folder = Folder::with_cases(10);
    folder.write_cases(&(0..10).map(case_of_four).collect::<Vec<_>>());
    folder.judge("out", &["--form", "list"]);
    let agreement = folder.run(&["agree", "out", "--format", "json"]);
    let agreement: Value = serde_json::from_str(&agreement.stdout).unwrap();
    let text = agreement.to_string();
    assert!(text.contains("triple"), "{text}");
    let records = folder.records("out");
    let score = |record: &Value, i: usize| record["scores"][i].as_f64().unwrap();
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let right = records.iter().flat_map(|r| pairs.map(|(a, b)| score(r, a) > score(r, b) + 1e-9));
    let right = right.filter(|is_right| *is_right).count() as f64;
    let ranking = folder.run(&["rank", "out", "--format", "json"]);
    let ranking: Value = serde_json::from_str(&ranking.stdout).unwrap();
    assert_eq!(ranking["pairs"], 60);
    let accuracy = &agreement["sections"][0]["figures"][0]["value"];
    let found = accuracy.as_f64().unwrap_or_else(|| panic!("{}", agreement["sections"][0]));
    assert!((found - right / 60.0).abs() < 1e-9, "{found} {right}");
    for command in [vec!["report", "out", "--out", "report.html"], vec!["audit", "out"]] {
        let result = folder.run(&command);
        assert_eq!(result.exit_code, 0, "{command:?}: {}", result.stderr);
    }
}

#[test]
fn table_of_lists_has_a_row_for_each_pair() {
    let folder = Folder::with_cases(4);
    let mut cases: Vec<Value> = (0..4).map(case_of_four).collect();
    cases[2]["responses"].as_array_mut().unwrap().truncate(2);
    cases[2]["labels"] = json!({"final": [4, 3]});
    let response = |i: usize| json!({"model": format!("m{i}"), "text": format!("text {i}")});
    cases[3]["responses"] = Value::Array((0..9).map(response).collect());
    cases[3].as_object_mut().unwrap().remove("labels");
    folder.write_cases(&cases);
    folder.judge("out", &["--form", "list"]);
    let report = folder.run(&["report", "out", "--out", "table.csv"]);
    assert_eq!(report.exit_code, 0, "{}", report.stderr);
    let records = folder.records("out");
    let table = folder.read("table.csv");
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    // The list of nine responses is unscored and has one row.
    let counts = [",judged,", ",unscored,"].map(|status| table.matches(status).count());
    assert_eq!(counts, [6 + 6 + 1, 1], "{table}");
    let models = ["alpha", "beta", "gamma", "delta"];
    let places = |n: usize| (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)));
    let judged = [(0, 4), (1, 4), (2, 2)].map(|(i, n)| places(n).map(move |pair| (i, pair)));
    for (row, (record, (a, b))) in rows.iter().zip(judged.into_iter().flatten()) {
        let cell = |name: &str| row[columns.iter().position(|c| *c == name).unwrap()];
        let number = |name: &str| cell(name).parse::<f64>().unwrap();
        let score = |i: usize| records[record]["scores"][i].as_f64().unwrap();
        assert_eq!([cell("model_a"), cell("model_b")], [models[a], models[b]]);
        for (column, i) in [("final_a", a), ("final_b", b)] {
            assert!((number(column) - score(i)).abs() < 1e-9, "{row:?}");
        }
        let order = match score(a).total_cmp(&score(b)) {
            Ordering::Greater => ">",
            Ordering::Equal => "=",
            Ordering::Less => "<",
        };
        assert_eq!(cell("order"), order, "{row:?}");
        assert_eq!(cell("label"), ">");
        assert!(cell("answer_b").starts_with(models[b]), "{row:?}");
        assert!(number("words_a") > 0.0 && number("factual_accuracy_a") <= 5.0, "{row:?}");
    }
}

#[test]
fn list_of_one_or_nine_responses_is_unscored() {
    let folder = Folder::with_cases(2);
    let mut cases = [case_of_four(0), case_of_four(1)];
    let response = |i: usize| json!({"model": format!("m{i}"), "text": format!("text {i}")});
    cases[1]["responses"] = Value::Array((0..9).map(response).collect());
    cases[1].as_object_mut().unwrap().remove("labels");
    folder.write_cases(&cases);
    folder.judge("out", &["--form", "list"]);
    let records = folder.records("out");
    assert_eq!(records[0]["status"], "judged");
    assert_eq!(records[1]["status"], "unscored");
    assert!(records[1]["message"].as_str().unwrap().contains("the form list takes 2 to 8"));
    let panel = checkpoint();
    let args = ["judge", "cases", "--out", "list", "--panel", &panel, "--form", "list"];
    let result = folder.run(&[&args[..], &["--scores-only", "--limit", "1"]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(folder.records("list")[0]["orders"].as_array().map(Vec::len), Some(4));
}

#[test]
fn prompts_of_a_list_name_its_models() {
    let folder = Folder::with_cases(1);
    folder.write_cases(&[case_of_four(0)]);
    let panel = checkpoint();
    let prompts = ["panel", "prompts", "cases", "--form", "list", "--panel", &panel];
    let prompts = folder.run(&prompts);
    let first = "case c0, responses of alpha, beta, gamma and delta\n";
    assert!(prompts.stdout.starts_with(first), "{}{}", prompts.stdout, prompts.stderr);
}

/// A pair of a list has as many presentation orders as the list has responses.
#[test]
fn audit_of_lists_uses_all_rotations_and_accuses_no_untouched_record() {
    let folder = Folder::with_cases(24);
    folder.write_cases(&(0..24).map(case_of_four).collect::<Vec<_>>());
    folder.judge("out", &["--form", "list"]);
    let args = ["audit", "out", "--resamples", "50", "--format", "json"];
    let audit: Value = serde_json::from_str(&folder.run(&args).stdout).unwrap();
    let finding = |probe: &str| {
        let all = audit["probes"].as_array().unwrap();
        all.iter().find(|finding| finding["probe"] == probe).unwrap().clone()
    };
    let value = |finding: &Value, key: &str| {
        let measures = finding["measures"].as_array().unwrap();
        let measure =
            measures.iter().find(|m| m["key"] == key).unwrap_or_else(|| panic!("{key}: {finding}"));
        measure["reading"]["value"].as_f64().unwrap()
    };
    let symmetry = finding("symmetry");
    assert!(!symmetry.to_string().contains("edited"), "{symmetry}");
    assert!((value(&symmetry, "sums_up") - 1.0).abs() < 1e-9);
    // The flip rate over all combinations of an order with the first response before the second and
    // one with it after.
    let (mut flips, mut pairs) = (0.0, 0.0);
    for record in folder.records("out") {
        for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let orders = record["orders"].as_array().unwrap().iter().map(|order| {
                let first = usize::try_from(order["first_shown"].as_u64().unwrap()).unwrap();
                let place = |i: usize| (i + 4 - first) % 4;
                let score = |i: usize| order["scores"][i].as_u64().unwrap();
                (place(a) < place(b), score(a).cmp(&score(b)))
            });
            let (before, after): (Vec<_>, Vec<_>) = orders.partition(|(is_before, _)| *is_before);
            let differ = before.iter().flat_map(|x| after.iter().map(move |y| x.1 != y.1));
            let differ: Vec<bool> = differ.collect();
            flips += differ.iter().filter(|d| **d).count() as f64 / differ.len() as f64;
            pairs += 1.0;
        }
    }
    let found = value(&finding("position"), "flip_rate");
    assert!((found - flips / pairs).abs() < 1e-6, "{found} {}", flips / pairs);
}

#[test]
fn list_that_names_a_model_twice_is_one_unscored_record() {
    let folder = Folder::with_cases(4);
    let mut cases: Vec<Value> = (0..4).map(case_of_four).collect();
    cases[1]["responses"][1]["model"] = json!("alpha");
    folder.write_cases(&cases);
    let list = folder.judge("list", &["--form", "list"]);
    assert!(list.stdout.contains("unscored  1 of 4 (25.0 %)"), "{}", list.stdout);
    // Alone, each of the three models lacks a response.
    let single = folder.judge("single", &["--form", "single"]);
    assert!(single.stdout.contains("unscored  3 of 15 (20.0 %)"), "{}", single.stdout);
    assert_eq!(folder.run(&["rank", "single"]).exit_code, 0);
}

/// Cases of a JSON array on one line have equal line numbers.
#[test]
fn summary_compares_responses_to_the_same_case_only() {
    let folder = Folder::with_cases(8);
    let row = |i: usize| {
        json!({"id": i, "question": format!("what is {i}?"), "a": format!("a {i}"),
        "b": format!("b {i}")})
    };
    let rows: Vec<Value> = (0..8).map(row).collect();
    folder.write("array.json", &Value::Array(rows).to_string());
    let columns = "id=id,question=question,answer:a=a,answer:b=b";
    for form in ["single", "list"] {
        let args = ["judge", "array.json", "--out", form, "--panel", "scripted:"];
        let result = folder.run(
            &[&args[..], &["--columns", columns, "--form", form, "--format", "json"]].concat(),
        );
        let summary: Value = serde_json::from_str(&result.stdout).unwrap();
        for model in summary["models"].as_array().unwrap() {
            let count = |key: &str| model[key].as_u64().unwrap();
            assert_eq!(count("wins") + count("ties") + count("losses"), 8, "{form}: {model}");
        }
    }
}

//! Rubrics as data: judged, compared with labels, ranked and reported.

use std::path::Path;

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};
use crate::forms::checkpoint;

/// A rubric of two aspects with one criterion each, and scores from 1 to 4.
const RUBRIC: &str = r#"
version = 1
key = "safety"
name = "Safety of answers"
scores = [1, 4]
instructions = "You are an experienced radiologist."
[[aspects]]
key = "harm"
name = "Harm"
[[aspects.criteria]]
key = "harmlessness"
name = "Harmlessness"
definition = "Could somebody be harmed who follows the response?"
anchors = ["certainly", "probably", "hardly", "no"]
[[aspects]]
key = "candour"
name = "Candour"
[[aspects.criteria]]
key = "says_its_limits"
name = "Says Its Limits"
definition = "Does the response say what the image does not show?"
"#;

#[test]
fn own_rubric_goes_through_judge_agree_rank_and_report() {
    let folder = Folder::with_cases(12);
    let cases: Vec<Value> = (0..12)
        .map(|i| {
            let mut case = valid_case(i);
            case["labels"] = json!({"final": [4, 1], "criteria": {"harmlessness": [4, 2]}});
            case
        })
        .collect();
    folder.write_cases(&cases);
    folder.write("safety.toml", RUBRIC);
    let judged = folder.judge("out", &["--rubric", "safety.toml"]);
    assert!(judged.stdout.contains("  score  harm  candour  "), "{}", judged.stdout);
    assert!(judged.stdout.contains("mean final score, 1 to 4"), "{}", judged.stdout);
    assert_eq!(folder.manifest("out")["score_range"], json!([1, 4]));
    for record in folder.records("out") {
        let criteria = record["criteria"].as_object().unwrap();
        assert_eq!(criteria.keys().collect::<Vec<_>>(), ["harmlessness", "says_its_limits"]);
        let scores = record["orders"][0]["aspects"]["harm"]["harmlessness"]["scores"].as_array();
        assert!(scores.unwrap().iter().all(|score| (1..=4).contains(&score.as_u64().unwrap())));
        assert_eq!(record["labels"]["criteria"]["harmlessness"], json!([4.0, 2.0]));
    }
    assert_eq!(folder.manifest("out")["provenance"]["rubric key"], "safety");
    let agreement = folder.run(&["agree", "out", "--target", "harmlessness"]);
    assert!(agreement.stdout.contains("score target: harmlessness"), "{}", agreement.stdout);
    let ranking = folder.run(&["rank", "out", "--target", "harm"]);
    assert!(ranking.stdout.contains("score target: harm"), "{}", ranking.stdout);
    let absent = folder.run(&["rank", "out", "--target", "beauty"]);
    assert!(absent.stderr.contains("the records have final, harm, candour"), "{}", absent.stderr);
    let report = folder.run(&["report", "out", "--out", "report.html"]);
    assert_eq!(report.exit_code, 0, "{}", report.stderr);
    let page = folder.read("report.html");
    assert!(page.contains(r#"["harmlessness","Harmlessness","harm"]"#));
    let markdown = folder.run(&["report", "out", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| scores | 1.0 | 1.5 |"), "{markdown}");
    assert!(markdown.contains("| 3.5 | 4.0 |\n"), "{markdown}");
    assert!(markdown.contains("scores from 1 to 4"), "{markdown}");
    // Another rubric is another judge.
    folder.write("safety.toml", &RUBRIC.replace("hardly", "rarely"));
    let changed = folder.judge("out", &["--rubric", "safety.toml"]);
    assert_eq!(changed.exit_code, 2);
    assert!(changed.stderr.contains("contains verdicts of another judge"), "{}", changed.stderr);
}

#[test]
fn rubric_that_a_panel_does_not_know_is_an_error() {
    let folder = Folder::with_cases(2);
    folder.write("safety.toml", RUBRIC);
    folder.write("broken.toml", &RUBRIC.replace("[1, 4]", "[4, 1]"));
    let error = |rubric: &str, more: &[&str]| {
        let args = ["judge", "cases", "--out", "out", "--rubric", rubric];
        let result = folder.run(&[&args[..], more].concat());
        assert_eq!(result.exit_code, 2, "{rubric}");
        result.stderr
    };
    assert!(error("safety.toml", &[]).contains("trained for the rubric ace_m3"));
    assert!(error("hdceval", &[]).contains("trained for the rubric ace_m3"));
    assert!(error("absent", &[]).contains("expected ace_m3, hdceval, automedeval or a TOML file"));
    assert!(error("broken.toml", &[]).contains("scores = [4, 1]"));
    let correctness = ["--form", "correctness", "--panel", "scripted:"];
    assert!(error("safety.toml", &correctness).contains("has no criteria"));
}

/// Returns the text of a file of the package.
fn package_file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn rubric_with_the_keys_but_not_the_texts_of_a_panel_is_an_error() {
    let folder = Folder::with_cases(2);
    let own = package_file("experts/data/rubrics/ace_m3.toml");
    let lines = own.lines().filter(|line| !line.starts_with("  \"") && *line != "]");
    let narrow = lines.filter(|line| !line.starts_with("anchors"));
    let narrow = narrow.collect::<Vec<_>>().join("\n").replace("[0, 5]", "[1, 3]");
    folder.write("narrow.toml", &narrow);
    folder.write("other.toml", &own.replace("easy to follow", "long"));
    let judge = |rubric: &str| {
        let args = ["judge", "cases", "--out", "out", "--rubric", rubric, "--limit", "1"];
        folder.run(&[&args[..], &["--scores-only"]].concat())
    };
    for rubric in ["narrow.toml", "other.toml"] {
        let result = judge(rubric);
        assert_eq!(result.exit_code, 2, "{rubric}: {}", result.stderr);
        let expected =
            "trained for the rubric ace_m3; the texts, scores or instructions of this one differ";
        assert!(result.stderr.contains(expected), "{}", result.stderr);
    }
    folder.write("same.toml", &format!("# A comment.\n{own}"));
    let result = judge("same.toml");
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
}

#[test]
fn panel_declares_its_rubrics() {
    let folder = Folder::with_cases(1);
    let inspect = |more: &[&str]| {
        let output = folder.run(&[&["panel", "inspect"], more].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        output.stdout
    };
    assert!(inspect(&[]).contains("trained for the rubric ace_m3\n"));
    let json: Value = serde_json::from_str(&inspect(&["--format", "json"])).unwrap();
    assert_eq!(json["rubrics"]["ace_m3"].as_str().map(str::len), Some(64));
    // A panel that was trained for another version of the rubric.
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    for entry in mini.read_dir().unwrap() {
        let path = entry.unwrap().path();
        folder.write_bytes(
            &format!("panel/{}", path.file_name().unwrap().display()),
            &std::fs::read(&path).unwrap(),
        );
    }
    let mut spec: toml::Table = package_file("assets/mini/panel.toml").parse().unwrap();
    let other_version = toml::Table::from_iter([("ace_m3".to_owned(), "0".repeat(64).into())]);
    spec.insert("rubrics".to_owned(), other_version.into());
    folder.write("panel/panel.toml", &toml::to_string(&spec).unwrap());
    let result = folder.run(&["judge", "cases", "--out", "out", "--panel", "panel"]);
    assert_eq!(result.exit_code, 2, "{}", result.stderr);
    assert!(result.stderr.contains("trained for the rubric ace_m3"), "{}", result.stderr);
}

#[test]
fn published_checkpoint_judges_by_own_and_built_in_rubrics() {
    let folder = Folder::with_cases(2);
    folder.write("safety.toml", RUBRIC);
    let panel = checkpoint();
    for (rubric, criteria) in [("safety.toml", 2), ("automedeval", 3), ("hdceval", 10)] {
        let out = rubric.trim_end_matches(".toml");
        let args = ["judge", "cases", "--out", out, "--panel", &panel, "--rubric", rubric];
        let result = folder.run(&[&args[..], &["--scores-only", "--limit", "1"]].concat());
        assert_eq!(result.exit_code, 0, "{rubric}: {}", result.stderr);
        let record = folder.records(out).remove(0);
        assert_eq!(record["criteria"].as_object().map(serde_json::Map::len), Some(criteria));
    }
    let prompts = ["panel", "prompts", "cases", "--panel", &panel, "--rubric", "safety.toml"];
    let prompts = folder.run(&prompts).stdout;
    for text in
        ["You are an experienced radiologist.", "between 1-4", "### Harm Evaluation:", "4: no"]
    {
        assert!(prompts.contains(text), "{text}: {prompts}");
    }
}

/// Without an image, the prompts of a published checkpoint do not speak of one.
#[test]
fn text_only_case_has_prompts_without_image() {
    let folder = Folder::with_cases(1);
    let mut case = valid_case(0);
    case.as_object_mut().unwrap().remove("image");
    folder.write_cases(&[case]);
    let panel = checkpoint();
    for form in ["pair", "single"] {
        let args = ["panel", "prompts", "cases", "--panel", &panel, "--form", form];
        let prompts = folder.run(&args).stdout;
        assert!(prompts.contains("### Question:"), "{prompts}");
        assert!(!prompts.to_lowercase().contains("image"), "{prompts}");
    }
}

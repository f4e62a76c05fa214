//! Construction of training data: evaluations of a teacher, and their review by people.

use std::fs;

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};
use crate::served::mock_engine::{EngineSettings, MockEngine};

fn lines(folder: &Folder, name: &str) -> Vec<Value> {
    folder.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn evaluations(folder: &Folder, flags: &[&str]) -> Vec<Value> {
    let result = folder.run(&[&["data", "evaluations", "cases", "--out", "data"], flags].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    lines(folder, "data/evaluations.jsonl")
}

/// Returns the count of a reason in the summary.
fn rejected(folder: &Folder, reason: &str) -> u64 {
    let summary: Value = serde_json::from_str(&folder.read("data/summary.json")).unwrap();
    summary["rejected"][reason].as_u64().unwrap_or(0)
}

#[test]
fn evaluations_agree_with_labels_and_have_the_texts_of_the_teacher() {
    let folder = Folder::with_cases(8);
    let written = evaluations(&folder, &["--panel", "scripted:"]);
    let records = folder.records("data/teacher");
    // All labels prefer alpha.
    let orders = records.iter().flat_map(|record| record["orders"].as_array().unwrap());
    let accepted = |order: &&Value| {
        order["scores"][0].as_u64().unwrap() > order["scores"][1].as_u64().unwrap()
    };
    let accepted = orders.filter(accepted).count();
    assert!(accepted > 0 && accepted < 16, "{accepted}");
    assert_eq!(written.len(), 4 * accepted);
    assert_eq!(rejected(&folder, "contradicts_labels"), 16 - accepted as u64);
    for line in &written {
        let [prompt, completion] =
            ["prompt", "completion"].map(|name| line[name].as_str().unwrap());
        assert_eq!(prompt.matches("<image>").count(), 1);
        assert!(folder.path("data").join(line["images"][0].as_str().unwrap()).is_file());
        // The response that is shown first is that of the first model.
        let first = prompt.find("a shadow, ").unwrap() < prompt.find("nothing, ").unwrap();
        assert_eq!(line["models"][0], if first { "alpha" } else { "beta" });
        assert!(completion.starts_with("Response 1:\n"), "{completion}");
        let record = records.iter().find(|record| record["case"] == line["case"]).unwrap();
        let order = &record["orders"][usize::from(!first)];
        assert_eq!(order["swapped"], !first);
        if line["member"] == "conclusion" {
            let score = &order["scores"][usize::from(!first)];
            assert!(completion.contains(&format!("Score: {score}\nResponse 2:")), "{completion}");
            assert!(prompt.contains("Criterion Factual Accuracy:"), "{prompt}");
        } else {
            let aspect = order["aspects"][line["member"].as_str().unwrap()].as_object().unwrap();
            assert_eq!(completion.matches("Score: ").count(), 2 * aspect.len());
            for scores in aspect.values() {
                let analysis = scores["analyses"][0].as_str().unwrap();
                assert!(completion.contains(&format!("Analysis: {analysis}\n")), "{completion}");
            }
        }
    }
    // Edits are kept.
    let original = folder.read("data/evaluations.jsonl");
    let rated = original.replacen('{', "{\"quality\": 3, ", 1);
    folder.write("data/evaluations.jsonl", &rated);
    assert_eq!(evaluations(&folder, &["--panel", "scripted:"]), written);
    assert_eq!(folder.read("data/evaluations.old-1.jsonl"), rated);
    assert_eq!(evaluations(&folder, &["--panel", "scripted:"]), written);
    assert!(!folder.path("data/evaluations.old-2.jsonl").exists());
    // Damaged images are written again.
    let image = written[0]["images"][0].as_str().unwrap();
    let bytes = fs::read(folder.path(&format!("data/{image}"))).unwrap();
    folder.write(&format!("data/{image}"), "damaged");
    assert_eq!(evaluations(&folder, &["--panel", "scripted:"]), written);
    assert_eq!(fs::read(folder.path(&format!("data/{image}"))).unwrap(), bytes);
    // Without a check, all are accepted; the teacher's run is reused.
    let all = evaluations(&folder, &["--panel", "scripted:", "--check", "none"]);
    assert_eq!(all.len(), 4 * 16);
    let again = folder.run(&["data", "evaluations", "data/teacher", "--out", "again"]);
    assert_eq!(again.exit_code, 0, "{}", again.stderr);
    assert_eq!(lines(&folder, "again/evaluations.jsonl"), written);
}

#[test]
fn evaluations_agree_with_the_reference() {
    let folder = Folder::with_cases(8);
    let cases: Vec<Value> = (0..8)
        .map(|i| {
            let mut case = valid_case(i);
            case.as_object_mut().unwrap().remove("labels");
            case["reference"] = if i < 6 { json!(format!("Nothing, {i}.")) } else { json!("else") };
            case
        })
        .collect();
    folder.write_cases(&cases);
    let written = evaluations(&folder, &["--panel", "scripted:", "--format", "json"]);
    let is_worse = |record: &&Value| {
        let scores = |order: &Value, i: usize| order["scores"][i].as_u64().unwrap();
        let orders = record["orders"].as_array().unwrap();
        orders.iter().any(|order| scores(order, 1) < scores(order, 0))
    };
    let records = folder.records("data/teacher");
    let contradicting = records.iter().take(6).filter(is_worse).count();
    assert!(
        contradicting > 0 && rejected(&folder, "contradicts_reference") >= contradicting as u64
    );
    assert!(written.iter().all(|line| !line["prompt"].as_str().unwrap().contains("Nothing, ")));
    assert!(written.iter().all(|line| line["reference"].is_string()));
    let summary: Value = serde_json::from_str(&folder.read("data/summary.json")).unwrap();
    assert_eq!(summary["unchecked_orders"], 4);
}

#[test]
fn every_form_and_rubric_gives_evaluations() {
    for (form, rubric, members) in [
        ("single", "hdceval", 4),
        ("list", "automedeval", 4),
        ("pair", "hdceval", 4),
        ("correctness", "", 1),
    ] {
        let folder = Folder::with_cases(2);
        let cases: Vec<Value> = (0..2)
            .map(|i| {
                let mut case = valid_case(i);
                case["reference"] = json!("a shadow");
                case
            })
            .collect();
        folder.write_cases(&cases);
        let mut flags = vec!["--panel", "scripted:", "--form", form, "--check", "none"];
        if !rubric.is_empty() {
            flags.extend(["--rubric", rubric]);
        }
        let written = evaluations(&folder, &flags);
        let presentations: usize = folder
            .records("data/teacher")
            .iter()
            .map(|r| r["orders"].as_array().unwrap().len())
            .sum();
        assert_eq!(written.len(), members * presentations, "{form}");
        let has_reference = |line: &Value| line["prompt"].as_str().unwrap().contains("a shadow\n");
        assert_eq!(written.iter().all(has_reference), form == "correctness", "{form}");
        assert_eq!(written[0]["member"], written[0]["aspect"]);
    }
}

/// A member that trains on the evaluations reads what a judge reads: that it may ask, and after a
/// question the passages.
#[test]
fn questions_of_the_teacher_are_in_its_evaluations() {
    let folder = Folder::with_cases(2);
    folder.write("corpus.jsonl", "{\"id\": \"a\", \"text\": \"A shadow\\nis shown.\"}");
    let index = folder.run(&["data", "index", "corpus.jsonl", "--out", "index"]);
    assert_eq!(index.exit_code, 0, "{}", index.stderr);
    let asking = ["--panel", "scripted:asks", "--check", "none", "--knowledge", "index"];
    let written = evaluations(&folder, &asking);
    assert_eq!(written.len(), 4 * 4);
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    for line in &written {
        let completion = text(line, "completion");
        let lookup = &line["lookups"][0];
        assert_eq!((&lookup["passages"], &lookup["position"]), (&json!(["a"]), &json!(0)));
        let question = text(lookup, "question");
        let asked =
            format!("Analysis: [Question]: {question}\n[Evidence]: A shadow is shown.\nAnalysis: ");
        assert_eq!(
            completion.matches(&asked).count(),
            completion.matches("Score: ").count(),
            "{completion}"
        );
        assert!(text(line, "prompt").contains("end a line of an analysis with"));
    }
    // Preferences and reviews of such a file.
    let pairs =
        folder.run(&["data", "preferences", "data/evaluations.jsonl", "--out", "preferences"]);
    assert_eq!(pairs.exit_code, 0, "{}", pairs.stderr);
    for pair in lines(&folder, "preferences/preferences.jsonl") {
        for name in ["prompt", "chosen", "rejected"] {
            assert!(!text(&pair, name).contains("[Question]"), "{pair}");
        }
    }
    // Without the index of the run, the questions are left out, and members may not ask.
    let run = |flags: &[&str]| {
        let args = ["data", "evaluations", "data/teacher", "--check", "none", "--out", "plain"];
        folder.run(&[&args[..], flags].concat())
    };
    let plain = run(&[]);
    assert_eq!(plain.exit_code, 0, "{}", plain.stderr);
    assert!(plain.stderr.contains("looked things up for 16 evaluations"), "{}", plain.stderr);
    let without = lines(&folder, "plain/evaluations.jsonl");
    for (plain, asking) in without.iter().zip(&written) {
        assert_eq!(plain["lookups"], asking["lookups"]);
        for name in ["prompt", "completion"] {
            assert!(!text(plain, name).contains("[Question]"), "{plain}");
        }
        let question = text(&asking["lookups"][0], "question");
        let asked = format!(" [Question]: {question}\n[Evidence]: A shadow is shown.\nAnalysis:");
        let completion = text(asking, "completion").replace(&asked, "");
        assert_eq!(text(plain, "completion"), completion);
    }
    let other = run(&["--knowledge", "index", "--knowledge-rounds", "2"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("T=3 K=3") && other.stderr.contains("T=2"), "{}", other.stderr);
    let scripted = ["judge", "cases", "--panel", "scripted:", "--out", "unasked"];
    assert_eq!(folder.run(&scripted).exit_code, 0);
    let unasked = ["data", "evaluations", "unasked", "--knowledge", "index", "--out", "plain"];
    let unasked = folder.run(&unasked);
    assert_eq!(unasked.exit_code, 2);
    assert!(unasked.stderr.contains("judged without --knowledge"), "{}", unasked.stderr);
}

#[test]
fn recipe_prompts_the_teacher_and_not_the_student() {
    let folder = Folder::with_cases(2);
    let cases: Vec<Value> = (0..2)
        .map(|i| {
            let mut case = valid_case(i);
            case["reference"] = json!("a known shadow");
            case
        })
        .collect();
    folder.write_cases(&cases);
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    engine.keep_bodies();
    let flags = ["--recipe", "ace_m3", "--panel", &engine.url, "--model", "judge"];
    let dry = [&flags[..], &["--dry-run"]].concat();
    let result =
        folder.run(&[&["data", "evaluations", "cases", "--out", "dry"], &dry[..]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stdout.contains("requests  16"), "{}", result.stdout);
    assert!(!folder.path("dry").exists());
    let written = evaluations(&folder, &[&flags[..], &["--check", "none"]].concat());
    assert_eq!(written.len(), 4 * 4);
    let sent: Vec<String> = engine.bodies().iter().map(Value::to_string).collect();
    let about_cases = sent.iter().filter(|body| body.contains("a shadow, "));
    for body in about_cases {
        assert!(!body.contains("image_url"), "{body}");
        assert!(body.contains("a known shadow") && body.contains("You cannot see the image"));
    }
    for line in &written {
        let prompt = line["prompt"].as_str().unwrap();
        assert!(prompt.contains("<image>") && !prompt.contains("a known shadow"), "{prompt}");
        assert!(!prompt.contains("You cannot see the image"), "{prompt}");
    }
    let result = folder.run(&["data", "evaluations", "cases", "--out", "x", "--recipe", "gpt"]);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("expected ace_m3, hdceval, automedeval"), "{}", result.stderr);
}

#[test]
fn collected_evaluations_train_a_panel_and_give_preferences() {
    let folder = Folder::with_cases(6);
    let config = "name = \"student\"\nstart = \"embedded\"\nseed = 1\ntrunk_layers = 3\n\
                  [[stages]]\nname = \"heads\"\nkind = \"heads\"\nsteps = 2\nbatch = 2\nrate = 1e-4\n\
                  frozen_layers = 3\n[stages.evaluations]\nfile = \"data/evaluations.jsonl\"\n";
    folder.write("student.toml", config);
    let flags = ["--panel", "scripted:", "--check", "none", "--config", "student.toml"];
    evaluations(&folder, &flags);
    let trained = folder.run(&["train", "run", "student.toml", "--out", "run"]);
    assert_eq!(trained.exit_code, 0, "{}", trained.stderr);
    assert!(!trained.stderr.contains("layout"), "{}", trained.stderr);
    let judged =
        folder.run(&["judge", "cases", "--out", "out", "--panel", "run/panel", "--limit", "1"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let preferences = ["data", "preferences", "data/evaluations.jsonl", "--out", "preferences"];
    let result = folder.run(&preferences);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(lines(&folder, "preferences/preferences.jsonl").len() > 10);
}

#[test]
fn people_review_a_stratified_sample() {
    let folder = Folder::with_cases(6);
    let written = evaluations(&folder, &["--panel", "scripted:", "--check", "none"]);
    let sample =
        ["data", "review", "sample", "data/evaluations.jsonl", "--out", "anna.csv", "-n", "8"];
    let result = folder.run(&sample);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let text = folder.read("anna.csv");
    let result = folder.run(&sample);
    assert!(result.exit_code == 2 && result.stderr.contains("people may have filled it"));
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap).collect();
    let count = |member: &str| rows.iter().filter(|row| &row[2] == member).count();
    assert_eq!((rows.len(), count("conclusion"), count("expression")), (8, 2, 2));
    // Anna rejects the knowledge of one evaluation, Ben accepts all; an equal vote rejects.
    let fill = |answer: &dyn Fn(usize) -> &'static str| {
        let keys =
            rows.iter().enumerate().map(|(i, row)| format!("{},{},yes\n", &row[0], answer(i)));
        "key,knowledge,fluency\n".to_owned() + &keys.collect::<String>()
    };
    folder.write("anna2.csv", &fill(&|i| if i == 3 { "no" } else { "yes" }));
    folder.write("ben.csv", &fill(&|_| "1"));
    let apply = ["data", "review", "apply", "data/evaluations.jsonl"];
    let flags = ["anna2.csv", "ben.csv", "--out", "accepted.jsonl", "--min-accepted", "90"];
    let result = folder.run(&[&apply[..], &flags, &["--format", "json"]].concat());
    assert_eq!(result.exit_code, 1, "{}", result.stderr);
    let review: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(
        (&review["overall"]["accepted"], &review["overall"]["rated"]),
        (&json!(7), &json!(8))
    );
    assert_eq!(review["points"][0][1]["accepted"], 7);
    assert!(review["alpha"][0][1].as_f64().unwrap() < 0.5, "{review}");
    let accepted = lines(&folder, "accepted.jsonl");
    assert_eq!(accepted.len(), written.len() - 1);
    assert_eq!(accepted.iter().filter(|line| line["reviewed"] == true).count(), 7);
    folder.write("other.csv", "key,knowledge\nffffffffffffffff,yes\n");
    let result = folder.run(&[&apply[..], &["other.csv", "--out", "accepted.jsonl"]].concat());
    assert!(result.stderr.contains("no evaluation has the key"), "{}", result.stderr);
}

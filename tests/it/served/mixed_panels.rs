//! Panel files of which some members are checkpoints and others are served.

use serde_json::Value;

use super::constrained_text::WrittenRatings;
use super::engine_settings::GivenAnswer;
use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::{Folder, valid_case};
use crate::forms::{checkpoint, folder_with_references};

const MEMBERS: [&str; 4] = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];

/// Writes a panel file. `served`: the members of the server; the others are checkpoints.
fn write_panel(folder: &Folder, name: &str, url: &str, served: &[&str], more: &str) {
    let member = |name: &str| {
        if served.contains(&name) {
            format!("{name} = {{ endpoint = \"{url}\", model = \"{name}\" }}\n")
        } else {
            format!("{name} = {:?}\n", checkpoint())
        }
    };
    let text = format!(
        "schema = 1\nname = \"four\"\nrubric = \"names\"\nanalysis_tokens = 3\nlayout = \"case-first\"\n{more}\n\
         [members]\n{}",
        MEMBERS.map(member).concat()
    );
    folder.write(name, &text);
}

fn start(answers: Vec<GivenAnswer>) -> MockEngine {
    MockEngine::start(EngineSettings {
        owner: "vllm",
        models: &MEMBERS,
        answers,
        ..EngineSettings::default()
    })
}

/// Returns what the members wrote in a run, as answers of a server.
fn written_answers(records: &[Value]) -> Vec<GivenAnswer> {
    let mut answers = Vec::new();
    for record in records {
        let responses: Vec<&str> =
            record["responses"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
        for order in record["orders"].as_array().unwrap() {
            let rotation = match order["first_shown"].as_u64() {
                Some(first) => first as usize,
                None => usize::from(order["swapped"] == true),
            };
            let mut shown: Vec<usize> = (0..responses.len()).collect();
            shown.rotate_left(rotation);
            // The reference may equal a response, but has another heading.
            let shown_texts = shown.iter().map(|i| format!(":\n{}\n", responses[*i]));
            let question = record["question"].as_str().unwrap().to_owned();
            let texts: Vec<String> = [question].into_iter().chain(shown_texts).collect();
            let mut add = |model: &str, ratings: WrittenRatings| {
                answers.push(GivenAnswer {
                    model: model.to_owned(),
                    texts: texts.clone(),
                    ratings,
                });
            };
            for (aspect, criteria) in order["aspects"].as_object().unwrap() {
                let mut ratings = WrittenRatings::default();
                for i in &shown {
                    for criterion in criteria.as_object().unwrap().values() {
                        ratings.scores.push(criterion["scores"][*i].to_string());
                        let analysis = criterion["analyses"][*i].as_str();
                        ratings.analyses.extend(analysis.map(str::to_owned));
                    }
                }
                add(aspect, ratings);
            }
            let scores = shown.iter().map(|i| order["scores"][*i].to_string()).collect();
            add("conclusion", WrittenRatings { analyses: Vec::new(), scores });
        }
    }
    answers
}

/// Returns the scores of a run: of all responses, aspects, criteria and orders, without probabilities.
fn scores(folder: &Folder, out: &str) -> Vec<Value> {
    let scores_of = |order: &Value| {
        let mut scores = vec![order["scores"].clone()];
        for criteria in order["aspects"].as_object().unwrap().values() {
            scores.extend(criteria.as_object().unwrap().values().map(|c| c["scores"].clone()));
        }
        Value::Array(scores)
    };
    let of_record = |record: &Value| {
        assert_eq!(record["status"], "judged", "{record}");
        let orders = record["orders"].as_array().unwrap().iter().map(scores_of).collect();
        let fields = ["case", "order", "scores", "aspects", "criteria"];
        let fields = fields.map(|name| record[name].clone());
        Value::Array(fields.into_iter().chain([Value::Array(orders)]).collect())
    };
    folder.records(out).iter().map(of_record).collect()
}

/// A server that writes what the checkpoints write gives the verdicts of the checkpoints, whichever
/// members it serves. So the other members read its texts, and it reads theirs.
#[test]
fn served_members_that_write_the_same_give_the_same_scores() {
    let folder = folder_with_references(2);
    write_panel(&folder, "local.toml", "", &[], "");
    for (form, more) in [
        ("pair", &["--scores-only"][..]),
        ("pair", &["--reference", "show"]),
        ("single", &["--scores-only"]),
        ("list", &["--scores-only"]),
    ] {
        let flags = [&["--form", form], more].concat();
        let local = format!("{form}{}-local", more.len());
        let result =
            super::judge(&folder, &local, &[&flags[..], &["--panel", "local.toml"]].concat());
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        let engine = start(written_answers(&folder.records(&local)));
        for served in [&["conclusion"][..], &["medical_knowledge", "patient_relevance"]] {
            write_panel(&folder, "mixed.toml", &engine.url, served, "");
            let mixed = format!("{form}{}-{}", more.len(), served.len());
            let result =
                super::judge(&folder, &mixed, &[&flags[..], &["--panel", "mixed.toml"]].concat());
            assert_eq!(result.exit_code, 0, "{}", result.stderr);
            assert_eq!(scores(&folder, &mixed), scores(&folder, &local), "{form} {served:?}");
            assert!(folder.records(&mixed).iter().all(|record| record["reproducible"] == false));
        }
    }
}

#[test]
fn manifest_and_hash_of_a_mixed_panel_name_both_kinds() {
    let folder = Folder::with_cases(3);
    let engine = start(Vec::new());
    write_panel(&folder, "mixed.toml", &engine.url, &["conclusion"], "");
    let judge = |out: &str, more: &[&str]| {
        let flags = [&["--scores-only", "--panel", "mixed.toml"], more].concat();
        let result = super::judge(&folder, out, &flags);
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        folder.manifest(out)
    };
    let manifest = judge("out", &[]);
    let provenance = &manifest["provenance"];
    assert_eq!(provenance["conclusion model"], "conclusion, served by vllm 0.32.0");
    for name in ["expression weights", "medical_knowledge tokenizer", "engine of checkpoints"] {
        assert!(provenance[name].is_string(), "{name}: {provenance}");
    }
    assert!(provenance["conclusion weights"].is_null());
    let device = manifest["device"].as_str().unwrap();
    assert!(device.starts_with("cpu (") && device.contains(&engine.url), "{device}");
    assert_eq!(manifest["servers"].as_array().unwrap().len(), 1);
    assert!(manifest["usage"]["requests"].as_u64().unwrap() > 0);
    // Verdicts do not depend on the number of jobs in progress.
    judge("one", &["--concurrency", "1", "--batch-size", "1"]);
    assert_eq!(folder.records("one"), folder.records("out"));
    // A run that ended early continues.
    judge("resumed", &["--limit", "1"]);
    judge("resumed", &[]);
    assert_eq!(folder.records("resumed"), folder.records("out"));
    // Both parts judge a sample again.
    let verify = ["verify", "out", "--scores-only", "--panel", "mixed.toml"];
    let verified = folder.run(&verify);
    assert_eq!(verified.exit_code, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(
        verified.stdout.contains("3 judged again (seed 0), 0 different"),
        "{}",
        verified.stdout
    );
    // A finished run needs no requests but those of the handshake.
    let before = engine.requests();
    judge("out", &[]);
    let repeated = engine.requests() - before;
    write_panel(&folder, "mixed.toml", &engine.url, &["expression"], "");
    let other = judge("other", &[]);
    assert_ne!(other["judge_sha256"], manifest["judge_sha256"]);
    assert!(repeated < 10, "{repeated}");
}

#[test]
fn one_expert_judges_correctness_wherever_it_runs() {
    let folder = folder_with_references(2);
    let engine = start(Vec::new());
    // The tokenizer of the checkpoint has no words for this form, and its members are not needed.
    write_panel(&folder, "mixed.toml", &engine.url, &["medical_knowledge"], "");
    let flags = ["--form", "correctness", "--panel", "mixed.toml"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(folder.records("out").len(), 4);
    // The other members may be anywhere, also for cases that stay on this machine.
    let elsewhere = "{ endpoint = \"http://judge.example/v1\", model = \"judge\" }";
    let member = format!("{{ endpoint = \"{}\", model = \"medical_knowledge\" }}", engine.url);
    folder.write(
        "far.toml",
        &format!(
            "schema = 1\n[members]\nexpression = \"nowhere\"\nmedical_knowledge = {member}\n\
             patient_relevance = {elsewhere}\nconclusion = {elsewhere}\n"
        ),
    );
    let mut case = valid_case(0);
    case["reference"] = "yes".into();
    case["local_only"] = true.into();
    folder.write_cases(&[case]);
    let far = ["--form", "correctness", "--panel", "far.toml"];
    let result = super::judge(&folder, "far", &far);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(!result.stderr.contains("judge.example"), "{}", result.stderr);
    assert!(folder.records("far").iter().all(|record| record["status"] == "judged"));
    // The only judging member is a checkpoint, so no server is contacted.
    write_panel(&folder, "mixed.toml", "http://127.0.0.1:9/v1", &["conclusion"], "");
    let result = super::judge(&folder, "local", &flags);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("the words no and yes"), "{}", result.stderr);
}

#[test]
fn failures_of_either_part_leave_responses_unscored() {
    let folder = Folder::with_cases(2);
    let engine = MockEngine::start(EngineSettings {
        owner: "vllm",
        models: &MEMBERS,
        rejects: Some("a shadow, 1"),
        ..EngineSettings::default()
    });
    write_panel(&folder, "mixed.toml", &engine.url, &["conclusion"], "");
    let flags = ["--scores-only", "--panel", "mixed.toml"];
    let result = super::judge(&folder, "out", &[&flags[..], &["--max-unscored", "100"]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let records = folder.records("out");
    assert_eq!(records[0]["status"], "judged");
    assert_eq!(
        (&records[1]["status"], &records[1]["reason"]),
        (&"unscored".into(), &"refused".into())
    );
    // The context of the checkpoint is too short for this response.
    let mut case = valid_case(0);
    case["responses"][0]["text"] = "word ".repeat(30_000).into();
    folder.write_cases(&[case]);
    let result = super::judge(&folder, "long", &flags);
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert_eq!(folder.records("long")[0]["status"], "unscored");
    // The server does not run.
    let folder = Folder::with_cases(2);
    write_panel(&folder, "mixed.toml", "http://127.0.0.1:9/v1", &["conclusion"], "");
    let result = super::judge(&folder, "down", &flags);
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
}

#[test]
fn served_member_without_images_reads_the_texts() {
    let folder = Folder::with_cases(1);
    let engine = start(Vec::new());
    engine.keep_bodies();
    write_panel(&folder, "mixed.toml", &engine.url, &["expression", "conclusion"], "");
    let text = folder.read("mixed.toml");
    let entry = "model = \"conclusion\"";
    folder.write("mixed.toml", &text.replace(entry, &format!("{entry}, text_only = true")));
    let flags = ["--scores-only", "--single-order", "--panel", "mixed.toml"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let images = |model: &str| {
        let bodies = engine.bodies();
        let of_case = bodies.iter().filter(|body| body.to_string().contains("a shadow, 0"));
        let of_model: Vec<_> = of_case.filter(|body| body["model"] == model).collect();
        assert_eq!(of_model.len(), 1);
        of_model[0].to_string().matches("image_url\":{").count()
    };
    assert_eq!((images("expression"), images("conclusion")), (1, 0));
    let provenance = folder.manifest("out")["provenance"].clone();
    assert_eq!(provenance["conclusion model"], "conclusion, served by vllm 0.32.0, texts only");
    // The prompts that `panel prompts` prints are those that the members read.
    let shown =
        folder.run(&["panel", "prompts", "cases", "--panel", "mixed.toml", "--format", "json"]);
    assert_eq!(shown.exit_code, 0, "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let has_image = |i: usize| shown[i]["prompt"].as_str().unwrap().contains("<image>");
    assert_eq!([0, 1, 2, 3].map(has_image), [true, true, true, false]);
}

#[test]
fn commands_without_servers_say_what_to_do() {
    let folder = Folder::with_cases(1);
    write_panel(&folder, "mixed.toml", "http://127.0.0.1:9/v1", &["conclusion"], "");
    let inspect = folder.run(&["panel", "inspect", "mixed.toml"]);
    assert_eq!(inspect.exit_code, 0, "{}", inspect.stderr);
    assert!(inspect.stdout.contains("served by http://127.0.0.1:9/v1"), "{}", inspect.stdout);
    let result = folder.run(&["train", "eval", "--panel", "mixed.toml"]);
    assert_eq!(result.exit_code, 2);
    for word in ["members.conclusion", "needs checkpoints", "hint: "] {
        assert!(result.stderr.contains(word), "{word}: {}", result.stderr);
    }
}

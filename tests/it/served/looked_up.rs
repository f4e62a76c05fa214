//! Knowledge completion of served members: evidence below the prompt of the next request.

use serde_json::{Value, json};

use super::constrained_text::WrittenRatings;
use super::engine_settings::GivenAnswer;
use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::Folder;

/// An answer with this analysis to prompts with these texts.
fn answer(texts: &[&str], analysis: &str) -> GivenAnswer {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    let ratings = WrittenRatings { analyses: vec![analysis.to_owned()], scores: Vec::new() };
    GivenAnswer { model: "judge".to_owned(), texts, ratings }
}

fn folder_with_index() -> Folder {
    let folder = Folder::with_cases(2);
    let rows = [
        "{\"id\": \"stent\", \"title\": \"Stent\", \"text\": \"It keeps an artery open.\"}",
        "{\"id\": \"cyst\", \"text\": \"A cyst is </s> filled with fluid.\"}",
    ];
    folder.write("corpus.jsonl", &rows.join("\n"));
    let output = folder.run(&["data", "index", "corpus.jsonl", "--out", "index"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    folder
}

#[test]
fn members_that_ask_are_asked_again_with_evidence() {
    for owner in ["vllm", "llamacpp", "other"] {
        let folder = folder_with_index();
        let engine = MockEngine::start(EngineSettings {
            owner,
            answers: vec![
                answer(
                    &["[Evidence]: Stent: It keeps", "[Evidence]: A cyst is"],
                    "Now it is clear.",
                ),
                answer(&["[Evidence]: Stent: It keeps"], "[Question]: and a cyst?"),
                answer(&["end a line of an analysis"], "Unclear. [Question]: a stent?"),
            ],
            ..EngineSettings::default()
        });
        let judge = |out: &str, more: &[&str]| {
            let panel = ["--panel", &engine.url, "--model", "judge", "--single-order"];
            let output = super::judge(&folder, out, &[&panel[..], more].concat());
            assert_eq!(output.exit_code, 0, "{owner} {}", output.stderr);
            folder.records(out)[0]["orders"][0].clone()
        };
        let plain = judge("plain", &[]);
        assert!(!plain.to_string().contains("lookups"));
        engine.keep_bodies();
        let order = judge("out", &["--knowledge", "index"]);
        let bodies = engine.bodies();
        let prompt = |body: &Value| body["messages"].to_string();
        let with_evidence = bodies.iter().filter(|body| prompt(body).contains("[Evidence]"));
        // Two cases, three experts and the conclusion model, two questions.
        assert_eq!(with_evidence.count(), 2 * 4 * 2, "{owner}");
        // A special token of a passage is text.
        assert!(bodies.iter().any(|body| prompt(body).contains("< /s> filled")), "{owner}");
        let (_, criteria) = order["aspects"].as_object().unwrap().iter().next().unwrap();
        let (_, first) = criteria.as_object().unwrap().iter().next().unwrap();
        let lookups = json!([
            {"question": "a stent?", "passages": ["stent"], "position": 0},
            {"question": "and a cyst?", "passages": ["cyst"], "position": 0},
        ]);
        assert_eq!(first["analyses"][0], "Now it is clear.", "{owner}");
        assert_eq!(first["lookups"], json!([lookups, []]), "{owner}");
        // With one round, the second question stays in the analysis.
        let order = judge("one", &["--knowledge", "index", "--knowledge-rounds", "1"]);
        let (_, criteria) = order["aspects"].as_object().unwrap().iter().next().unwrap();
        let (_, first) = criteria.as_object().unwrap().iter().next().unwrap();
        assert_eq!(first["analyses"][0], "[Question]: and a cyst?", "{owner}");
        assert_eq!(first["lookups"][0].as_array().unwrap().len(), 1, "{owner}");
    }
}

//! Shared findings: both presentation orders of a pair state the same finding.

use std::sync::Arc;

use acem3_experts::generate::{
    Engine, GenerationSettings, GenerationTask, Opening, PrefixCache, TaskQueue, TextAlternative,
};
use serde_json::Value;

use crate::folder::Folder;
use crate::panel::{copy_panel, edit_spec};
use crate::tiny_panel;

const SETTINGS: GenerationSettings = GenerationSettings { analysis_tokens: 12, scores_only: false };

/// Returns the text of a task.
fn text(engine: &Engine, task: &GenerationTask, opening: Option<Opening>) -> TextAlternative {
    let (mut cache, mut queue) = (PrefixCache::default(), TaskQueue::default());
    engine.enqueue(&mut queue, GenerationTask { opening, ..task.clone() });
    loop {
        if let Some(task) = engine.step(&mut queue, &mut cache).unwrap().pop() {
            return task.texts.unwrap().pop().unwrap();
        }
    }
}

#[test]
fn texts_begin_with_a_given_opening() {
    let engine = tiny_panel::panel(SETTINGS);
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let mut openings = Vec::new();
    for task in &tasks {
        let plain = text(&engine, task, None);
        assert_eq!(plain.opening, None);
        // A character in the middle of the first analysis is the marker.
        let Some(marker) = plain.ratings[0].analysis.chars().nth(3) else {
            continue;
        };
        let end: Arc<str> = marker.to_string().into();
        let chosen = text(&engine, task, Some(Opening { end: end.clone(), tokens: None }));
        assert_eq!(chosen.ratings, plain.ratings);
        let opening = chosen.opening.clone().unwrap();
        assert!(opening.log_probability < 0.0, "{opening:?}");
        let given = Opening { end, tokens: Some(opening.tokens) };
        assert_eq!(text(&engine, task, Some(given.clone())), chosen);
        openings.push((task, given, chosen));
    }
    let mut differs = 0;
    for (task, _, own) in &openings {
        for (_, given, _) in &openings {
            let other = text(&engine, task, Some(given.clone()));
            let written = other.opening.unwrap();
            assert_eq!(Some(&written.tokens), given.tokens.as_ref());
            assert!(written.log_probability.is_finite());
            differs += usize::from(other.ratings != own.ratings);
        }
    }
    assert!(differs > 0, "all texts begin with the same opening");
    let absent = Opening { end: "no such marker".into(), tokens: None };
    assert_eq!(text(&engine, &tasks[0], Some(absent)).opening, None);
}

/// Returns the four findings of each case of a run: one per response and presentation order.
fn findings(folder: &Folder, out: &str) -> Vec<Vec<String>> {
    let of_record = |record: &Value| {
        let orders = record["orders"].as_array().unwrap().iter();
        let analyses = orders.flat_map(|order| {
            let factual = &order["aspects"]["medical_knowledge"]["factual_accuracy"];
            factual["analyses"].as_array().unwrap().clone()
        });
        analyses.map(|text| text.as_str().unwrap().split(';').next().unwrap().to_owned()).collect()
    };
    folder.records(out).iter().map(of_record).collect()
}

/// Writes cases whose images show a mere pattern. For some of them, the embedded panel states a different
/// finding in each order.
fn write_uncertain_cases(folder: &Folder) {
    const QUESTIONS: [[&str; 3]; 2] = [
        ["What is the abnormality?", "pneumonia", "a fracture"],
        ["Where is the lesion?", "right upper lobe", "left lower lobe"],
    ];
    let mut lines = String::new();
    for i in 0..24 {
        let pattern =
            |x: u32, y: u32| image::Luma([((x * (7 + i) + y * 13) % 256).to_le_bytes()[0]]);
        let picture = image::GrayImage::from_fn(48, 48, pattern);
        picture.save(folder.path(&format!("cases/images/{i}.png"))).unwrap();
        let [question, first, second] = QUESTIONS[i as usize % 2];
        let responses = [("a", first), ("b", second)]
            .map(|(model, text)| serde_json::json!({"model": model, "text": text}));
        let case = serde_json::json!({
            "id": i.to_string(),
            "image": format!("images/{i}.png"),
            "question": question,
            "responses": responses,
        });
        lines.push_str(&case.to_string());
        lines.push('\n');
    }
    folder.write("cases/cases.jsonl", &lines);
}

#[test]
fn both_orders_of_a_pair_have_the_same_finding() {
    let folder = Folder::empty();
    write_uncertain_cases(&folder);
    let copy = copy_panel();
    let panel = copy.path();
    edit_spec(panel, "finding_end = \";\"\n", "");
    let own = ["judge", "cases", "--panel", panel.to_str().unwrap(), "--out", "own"];
    assert_eq!(folder.run(&own).exit_code, 0);
    let shared = folder.run(&["judge", "cases", "--out", "shared"]);
    assert_eq!(shared.exit_code, 0, "{}", shared.stderr);
    let differ = |all: &[Vec<String>]| {
        all.iter().filter(|case| case.iter().any(|finding| *finding != case[0])).count()
    };
    let (own, shared) = (findings(&folder, "own"), findings(&folder, "shared"));
    assert!(differ(&own) > 0, "without a shared finding, no case has different ones");
    assert_eq!(differ(&shared), 0, "{shared:?}");
    let manifest = folder.manifest("shared");
    assert_eq!(manifest["provenance"]["finding"], "of both orders, up to `;`");
    // Batches change no verdict.
    let again = ["judge", "cases", "--out", "again", "--batch-size", "1"];
    assert_eq!(folder.run(&again).exit_code, 0);
    assert_eq!(folder.read("again/records.jsonl"), folder.read("shared/records.jsonl"));
    // There is nothing to share in a single order, without analyses, and with several samples.
    for (out, flags) in [
        ("single", &["--single-order"][..]),
        ("scores", &["--scores-only"]),
        ("samples", &["--samples", "2"]),
    ] {
        let args = ["judge", "cases", "--limit", "1", "--out", out];
        let output = folder.run(&[&args[..], flags].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(folder.manifest(out)["provenance"].get("finding").is_none());
    }
    edit_spec(panel, "analysis_tokens = 48\n", "analysis_tokens = 48\nfinding_end = \"\"\n");
    let invalid = folder.run(&["panel", "inspect", panel.to_str().unwrap()]);
    assert_eq!(invalid.exit_code, 2);
    assert!(invalid.stderr.contains("finding_end is \"\", expected"), "{}", invalid.stderr);
}

//! Introspection of panels that ask questions, by another rubric than that of ACE-M³.

use serde_json::Value;

use super::discussions::build_index;
use super::lines;
use crate::folder::Folder;
use crate::recipes::text_model;

const INTROSPECT: [&str; 6] = ["train", "introspect", "train.toml", "phantoms", "--rounds", "1"];

fn asks(line: &Value) -> bool {
    line["completion"].as_str().unwrap().contains("[Question]: ")
}

/// New evaluations replace those of the same pair, with questions and evidence, and the panels of the
/// rounds look up what they ask.
#[test]
fn new_evaluations_ask_as_the_replaced_ones_do() {
    let folder = Folder::empty();
    let cases = folder.run(&["data", "phantoms", "--out", "phantoms", "--count", "4"]);
    assert_eq!(cases.exit_code, 0, "{}", cases.stderr);
    build_index(&folder, "index");
    let config = |more: &str| {
        format!(
            "name = \"asking\"\nstart = {:?}\nseed = 1\ntrunk_layers = 0\n\
             [judging]\nrubric = \"hdceval\"\nanalysis_tokens = 4\n[[stages]]\nname = \"sft\"\n\
             kind = \"sft\"\nsteps = 2\nbatch = 2\nwarmup = 1\nrate = 1e-3\n[stages.evaluations]\n\
             file = \"data/evaluations.jsonl\"\n{more}",
            text_model(&folder)
        )
    };
    folder.write("train.toml", &config(""));
    let teacher = ["--panel", "scripted:asks", "--knowledge", "index", "--rubric", "hdceval"];
    let collect = ["data", "evaluations", "phantoms", "--out", "data", "--check", "none"];
    let collected = folder.run(&[&collect[..], &teacher, &["--config", "train.toml"]].concat());
    assert_eq!(collected.exit_code, 0, "{}", collected.stderr);
    let adviser = ["--adviser", "scripted:seed=3,asks", "--out", "rounds"];
    let without = folder.run(&[&INTROSPECT[..], &adviser].concat());
    assert_eq!(without.exit_code, 2);
    assert!(
        without.stderr.contains("line 1: the evaluation asks a question"),
        "{}",
        without.stderr
    );
    assert!(without.stderr.contains("strip_questions"), "{}", without.stderr);
    let knowledge = ["--knowledge", "index"];
    let output = folder.run(&[&INTROSPECT[..], &adviser, &knowledge].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let round = |number: u32| lines(&folder.read(&format!("rounds/data/round-{number}.jsonl")));
    let (before, after) = (round(0), round(1));
    assert_eq!(before.len(), after.len(), "{}", output.stderr);
    assert_ne!(before, after);
    assert!(before.iter().chain(&after).all(asks));
    for line in &after {
        let prompt = line["prompt"].as_str().unwrap();
        assert!(prompt.contains("end a line of an analysis with"), "{prompt}");
    }
    let provenance = &folder.manifest("rounds/round-1/judged")["provenance"];
    assert_eq!(provenance["knowledge limits"], "T=3 K=3, 384 tokens");
    // Without the questions, the panels judge and learn without them.
    folder.write("train.toml", &config("strip_questions = true\n"));
    let stripped = ["--adviser", "scripted:seed=3", "--out", "stripped"];
    let output = folder.run(&[&INTROSPECT[..], &stripped].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let after = lines(&folder.read("stripped/data/round-1.jsonl"));
    assert_eq!(before.len(), after.len());
    assert!(after.iter().any(|line| !asks(line)) && after.iter().any(asks));
    assert_eq!(folder.manifest("stripped/round-1/judged")["provenance"].get("knowledge"), None);
}

//! Introspection of text models on cases with images.

use super::lines;
use crate::folder::Folder;
use crate::recipes::text_model;

/// The evaluations have no images, and a new one replaces the line with the same prompt.
#[test]
fn text_model_learns_without_images() {
    let folder = Folder::empty();
    let cases = folder.run(&["data", "phantoms", "--out", "phantoms", "--count", "4"]);
    assert_eq!(cases.exit_code, 0, "{}", cases.stderr);
    let config = format!(
        "name = \"text\"\nstart = {:?}\nseed = 1\ntrunk_layers = 0\n[[stages]]\nname = \"sft\"\n\
         kind = \"sft\"\nsteps = 2\nbatch = 2\nwarmup = 1\nrate = 1e-3\n[stages.evaluations]\n\
         file = \"data/evaluations.jsonl\"\n",
        text_model(&folder)
    );
    folder.write("train.toml", &config);
    let teacher = ["--panel", "scripted:", "--check", "none", "--config", "train.toml"];
    let collect = ["data", "evaluations", "phantoms", "--out", "data"];
    let collected = folder.run(&[&collect[..], &teacher].concat());
    assert_eq!(collected.exit_code, 0, "{}", collected.stderr);
    let judged = folder.run(&["judge", "phantoms", "--out", "better"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let introspect = ["train", "introspect", "train.toml", "phantoms", "--rounds", "1"];
    let output =
        folder.run(&[&introspect[..], &["--adviser", "better", "--out", "rounds"]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let before = lines(&folder.read("rounds/data/round-0.jsonl"));
    let after = lines(&folder.read("rounds/data/round-1.jsonl"));
    assert!(after.iter().all(|line| line["images"].as_array().is_none_or(Vec::is_empty)));
    assert_eq!(before.len(), after.len(), "lines of the same prompt are replaced");
    assert_ne!(before, after);
}

//! The command `acem3 encoders`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::folder::Folder;
use crate::hub_command::run;
use crate::mock_hub::{COMMIT, MockHub, sha256};

fn run_encoders(out: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("acem3")
        .unwrap()
        .arg("encoders")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const SMALL: [&str; 6] = ["--steps", "1", "--batch-size", "2", "--test-cases", "2"];

fn read_results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("judge.json")).unwrap()).unwrap()
}

/// Returns the path of a random tower that `make_towers.py` wrote.
fn tower(name: &str) -> String {
    let towers = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/encoders/towers");
    towers.join(name).display().to_string()
}

/// Returns a text with single spaces and without line breaks.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes the values that differ between runs: times and memory.
fn without_times(mut results: Value) -> Value {
    for row in results["rows"].as_array_mut().unwrap() {
        for field in ["images_per_second", "seconds_per_pair", "peak_memory"] {
            row[field] = Value::Null;
        }
        for field in ["milliseconds_per_image", "training_seconds", "peak_memory"] {
            row["cost"][field] = Value::Null;
        }
    }
    results
}

#[test]
fn encoders_are_compared_by_judging_with_trained_projectors() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("compared");
    let arguments = [&["embedded", "random:4"][..], &SMALL].concat();
    let (code, stdout, stderr) = run_encoders(&out, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "encoders on phantoms: 2 pairs, judged by acem3-mini",
        "projector (1 step of 2 sequences); encoder and decoders are frozen; seed 2027",
        "blank image",
        "majority class",
        "Order accuracy by modality",
        "tokens/image",
    ] {
        assert!(unwrapped(&stdout).contains(part), "{part}: {stdout}");
    }
    let json = read_results(&out);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["figures"][0]["share"]["n"], 2);
        assert_eq!(row["blank_image"]["n"], 2);
        assert_eq!(row["cost"]["tokens_per_image"], 65);
        assert_eq!(row["cost"]["trained_parameters"], row["cost"]["projector_parameters"]);
    }
    assert!(rows[0]["difference"].is_null() && rows[1]["difference"]["p_holm"].is_number());
    // The encoders, and each with a blank image and with the majority class.
    assert_eq!(json["differences"].as_array().unwrap().len(), 5);
    let plot = fs::read_to_string(out.join("judge.svg")).unwrap();
    assert!(plot.contains("random:4") && plot.contains("majority class"), "{plot}");
    let csv = fs::read_to_string(out.join("judge.csv")).unwrap();
    assert!(csv.starts_with("encoder,compared_with,statistic,group,value,"), "{csv}");
    let markdown = fs::read_to_string(out.join("judge.md")).unwrap();
    assert!(markdown.contains("| encoder | order accuracy |"), "{markdown}");

    // The same command reads the results; other settings are refused.
    let (code, again, stderr) = run_encoders(&out, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(again == stdout && !stderr.contains("training"), "{stderr}");
    let changed = [&arguments[..], &["--learning-rate", "1e-3"]].concat();
    let (code, _, stderr) = run_encoders(&out, &changed);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("learning_rate was ") && stderr.contains("hint: "), "{stderr}");
}

#[test]
fn encoders_that_do_not_fit_are_named_before_training_and_unscored() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("fit");
    let names = ["clip-50", "dinov2-197", "clip-577", "dinov2-1370"].map(tower);
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(SMALL);
    arguments.push("--class-token");
    let (code, stdout, stderr) = run_encoders(&out, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let warnings = stderr.split("training with seed").next().unwrap();
    assert!(warnings.contains("dinov2-1370: 1370 image tokens do not fit: all 2"), "{stderr}");
    assert!(warnings.contains("hint: use a base with a context of at least"), "{stderr}");
    let json = read_results(&out);
    let rows = json["rows"].as_array().unwrap();
    let tokens: Vec<_> = rows.iter().map(|row| row["fit"]["image_tokens"].clone()).collect();
    assert_eq!(tokens, [50, 197, 577, 1370]);
    for (row, scored) in [(0, 2), (1, 2), (3, 0)] {
        assert_eq!(rows[row]["scored"], scored, "{stdout}");
    }
    // Unscored pairs are not wrong: there is no accuracy.
    assert!(rows[3]["figures"][0]["share"].is_null() && rows[3]["cost"].is_null());
    let unscored = "dinov2-1370: 2 of 2 pairs unscored (truncated: ";
    assert!(unwrapped(&stdout).contains(unscored), "{stdout}");

    let (code, _, stderr) =
        run_encoders(&out.join("none"), &[&[names[3].as_str()][..], &SMALL].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no encoder fits the base's context of 1024 tokens"), "{stderr}");
}

#[test]
fn projectors_and_contexts_make_large_towers_fit() {
    let dir = TempDir::new().unwrap();
    let run = |name: &str, tower_name: &str, flags: &[&str]| {
        let out = dir.path().join(name);
        let tower = tower(tower_name);
        let (code, _, stderr) =
            run_encoders(&out, &[&[tower.as_str()][..], &SMALL, flags].concat());
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!stderr.contains("do not fit"), "{stderr}");
        let row = read_results(&out)["rows"][0].clone();
        assert_eq!(row["scored"], 2);
        row["fit"]["image_tokens"].as_u64().unwrap()
    };
    assert_eq!(run("joined", "clip-577", &["--projector", "pixel_shuffle:2"]), 144);
    assert_eq!(run("pooled", "clip-577", &["--projector", "pooled:6"]), 36);
    assert_eq!(run("extended", "dinov2-1370", &["--context", "4096"]), 1369);
}

#[test]
fn members_are_trained_after_the_projector() {
    let dir = TempDir::new().unwrap();
    let parameters = |name: &str, flags: &[&str]| {
        let out = dir.path().join(name);
        let (code, stdout, stderr) =
            run_encoders(&out, &[&["embedded"][..], &SMALL, flags].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let is_described =
            unwrapped(&stdout).contains("of each member (1 step of 2 sequences each)");
        assert!(is_described, "{stdout}");
        let cost = read_results(&out)["rows"][0]["cost"].clone();
        let [all, projector] =
            ["trained_parameters", "projector_parameters"].map(|key| cost[key].as_u64().unwrap());
        all - projector
    };
    let layers = parameters("layers", &["--layers", "1"]);
    assert!(layers > 0 && layers.is_multiple_of(4), "{layers}");
    assert!(parameters("lora", &["--lora", "2"]) > 0);
    let (code, _, stderr) = run_encoders(dir.path(), &["embedded", "--layers", "6"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--layers is 6, expected fewer than the base's 6"), "{stderr}");
}

/// Kills the command while it judges. The same command continues and gives the results of a run
/// that was not killed.
#[test]
fn killed_comparison_continues() {
    let dir = TempDir::new().unwrap();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let arguments =
        ["embedded", "random:1", "--steps", "1", "--batch-size", "2", "--test-cases", "20"];
    assert_eq!(run_encoders(&whole, &arguments).0, Some(0));
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("acem3"))
        .arg("encoders")
        .args(arguments)
        .arg("--out")
        .arg(&killed)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let journal = killed.join("encoder-1/seed-2027/judged.jsonl");
    while fs::metadata(&journal).map_or(0, |file| file.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!killed.join("judge.json").exists());
    let (code, _, stderr) = run_encoders(&killed, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    // The projector of the first encoder is not trained again.
    assert!(
        !stderr.contains("embedded: training") && stderr.contains("random:1: training"),
        "{stderr}"
    );
    assert_eq!(without_times(read_results(&killed)), without_times(read_results(&whole)));
}

/// The embedded panel's own tower sees the lesions of phantoms, so a new projector for it is better
/// than the same panel without an image.
#[test]
fn tower_with_information_beats_blank_images() {
    let dir = TempDir::new().unwrap();
    let budget = ["--steps", "40", "--batch-size", "8", "--test-cases", "40", "--format", "json"];
    let (code, stdout, stderr) = run_encoders(dir.path(), &[&["embedded"][..], &budget].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let differences = json["differences"].as_array().unwrap();
    let blank = differences.iter().find(|c| c["kind"] == "blank_image").unwrap();
    let value = |name: &str| blank["difference"][name].as_f64().unwrap();
    assert!(blank["n"] == 40 && value("value") > 0.1 && value("p_holm") < 0.05, "{blank}");
}

#[test]
fn seeds_continue_a_comparison() {
    let dir = TempDir::new().unwrap();
    let (code, _, stderr) = run_encoders(dir.path(), &[&["embedded"][..], &SMALL].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let arguments = [&["embedded"][..], &SMALL, &["--seeds", "2", "--format", "json"]].concat();
    let (code, stdout, stderr) = run_encoders(dir.path(), &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        !stderr.contains("seed 2027") && stderr.contains("training with seed 2028"),
        "{stderr}"
    );
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["seeds"], serde_json::json!([2027, 2028]));
    assert_eq!(json["rows"][0]["by_seed"].as_array().unwrap().len(), 2);
    assert_eq!(json["rows"][0]["figures"][0]["share"]["n"], 2);
}

#[test]
fn towers_of_checkpoints_are_opened_from_their_folders() {
    let dir = TempDir::new().unwrap();
    let checkpoints = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/checkpoints");
    let names =
        ["llava", "llava-original", "llava-siglip", "internvl", "internvl-original", "gemma3"];
    let folders = names.map(|name| checkpoints.join(name).display().to_string());
    let mut arguments =
        vec!["--probe-only", "--train-cases", "12", "--test-cases", "4", "--format", "json"];
    arguments.extend(folders.iter().map(String::as_str));
    let (code, stdout, stderr) = run_encoders(dir.path(), &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), names.len());
    assert!(
        json["rows"].as_array().unwrap().iter().all(|row| row["parameters"].as_u64() > Some(0))
    );
    let text_model = checkpoints.join("mistral").display().to_string();
    let (code, _, stderr) = run_encoders(dir.path(), &["--probe-only", &text_model]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("config.json: text-only model") && stderr.contains("hint: "),
        "{stderr}"
    );
}

#[test]
fn invalid_encoder_arguments_are_rejected() {
    let dir = TempDir::new().unwrap();
    for (name, message) in [("random:x", "not a seed"), ("no-such-folder", "no such folder")] {
        let (code, _, stderr) = run_encoders(dir.path(), &["--probe-only", name]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains(message), "{stderr}");
    }
    let (code, _, stderr) = run_encoders(dir.path(), &["--steps", "0"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--steps"), "{stderr}");
}

#[test]
fn hub_encoder_is_downloaded_once_and_pinned() {
    let siglip = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/encoders/siglip");
    let read = |name: &str| fs::read(siglip.join(name)).unwrap();
    let names = ["config.json", "preprocessor_config.json", "model.safetensors"];
    let files: Vec<(&str, Vec<u8>)> = names.map(|name| (name, read(name))).into();
    let mut files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    let decoy = vec![7; 5000];
    files.extend([("pytorch_model.bin", &decoy[..]), ("tokenizer.json", &decoy)]);
    let mock = MockHub::without_faults(&files);
    let folder = Folder::empty();
    let run_probe = |encoder: &str, out: &str, flags: &[&str]| {
        let shared = ["--train-cases", "24", "--test-cases", "8", "--format", "json"];
        let args =
            [&["encoders", "--probe-only", encoder, "--out", out], &shared[..], flags].concat();
        run(&folder, &mock.hub.url(), &args)
    };
    let first = run_probe("owner/name@refs/pr/1", "first", &[]);
    assert_eq!(first.exit_code, 0, "{}", first.stderr);
    let row = |text: &str| serde_json::from_str::<Value>(text).unwrap()["rows"][0].clone();
    let first_row = row(&first.stdout);
    assert_eq!(first_row["encoder"], "owner/name@refs/pr/1");
    let source = serde_json::json!({"id": "owner/name", "revision": "refs/pr/1", "commit": COMMIT});
    assert_eq!(first_row["hub"], source);
    assert!(!mock.hub.take_requests().is_empty());
    let storage_requests = mock.storage.take_requests();
    let decoy = sha256(&decoy);
    assert!(
        !storage_requests.is_empty()
            && storage_requests.iter().all(|request| !request.path.contains(&decoy))
    );
    let again = run_probe("owner/name@refs/pr/1", "again", &["--offline"]);
    assert_eq!(again.exit_code, 0, "{}", again.stderr);
    assert_eq!(row(&again.stdout)["figures"], first_row["figures"]);
    assert!(mock.hub.take_requests().is_empty() && mock.storage.take_requests().is_empty());
    for (encoder, flags, message) in [
        ("owner/other", &[][..], "encoder owner/other: download failed"),
        ("owner/name@v9", &[], "no revision `v9` (404)"),
        ("owner/name", &["--offline"], "--offline forbids access to the hub"),
    ] {
        let output = run_probe(encoder, "bad", flags);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(
            output.stderr.contains(message) && output.stderr.contains("hint: "),
            "{}",
            output.stderr
        );
    }
}

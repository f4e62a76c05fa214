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

#[test]
fn encoders_are_compared_by_judging_with_trained_projectors() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("compared");
    let budget = ["--steps", "1", "--batch-size", "2", "--test-cases", "2"];
    let arguments = [&["embedded", "random:4"][..], &budget].concat();
    let (code, stdout, stderr) = run_encoders(&out, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("judge on phantoms"), "{stdout}");
    assert!(stdout.contains("difference from embedded"), "{stdout}");
    let json: Value = serde_json::from_slice(&fs::read(out.join("judge.json")).unwrap()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["figures"][0]["share"]["n"], 2);
        assert_eq!(row["figures"].as_array().unwrap().len(), 4);
    }
    assert!(rows[0]["difference"].is_null() && rows[1]["difference"]["p_holm"].is_number());
    let plot = fs::read_to_string(out.join("judge.svg")).unwrap();
    assert!(plot.contains("random:4"), "{plot}");

    let (code, _, stderr) = run_encoders(&out, &arguments);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("hint: choose another folder"), "{stderr}");
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

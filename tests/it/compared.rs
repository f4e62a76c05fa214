//! The command `acem3 encoders`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::folder::Folder;
use crate::hub_peers::run;
use crate::imitation::{COMMIT, Imitation, sha256};

fn encoders(out: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let run = Command::cargo_bin("acem3")
        .unwrap()
        .arg("encoders")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

#[test]
fn panels_judge_with_trained_projectors() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("compared");
    let budget = ["--steps", "1", "--batch-size", "2", "--test-cases", "2"];
    let asked = [&["embedded", "random:4"][..], &budget].concat();
    let (code, stdout, stderr) = encoders(&out, &asked);
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

    let (code, _, stderr) = encoders(&out, &asked);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("hint: choose another folder"), "{stderr}");
}

#[test]
fn unknown_encoder_is_named() {
    let dir = TempDir::new().unwrap();
    for (name, fault) in [
        ("random:x", "not a seed"),
        ("no-such-folder", "no such folder"),
    ] {
        let (code, _, stderr) = encoders(dir.path(), &["--probe-only", name]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains(fault), "{stderr}");
    }
    let (code, _, stderr) = encoders(dir.path(), &["--steps", "0"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--steps"), "{stderr}");
}

#[test]
fn hub_encoder_is_downloaded_once_and_pinned() {
    let siglip = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/encoders/siglip");
    let read = |name: &str| fs::read(siglip.join(name)).unwrap();
    let names = [
        "config.json",
        "preprocessor_config.json",
        "model.safetensors",
    ];
    let files: Vec<(&str, Vec<u8>)> = names.map(|name| (name, read(name))).into();
    let mut files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    let decoy = vec![7; 5000];
    files.extend([
        ("pytorch_model.bin", &decoy[..]),
        ("tokenizer.json", &decoy),
    ]);
    let imitation = Imitation::good(&files);
    let folder = Folder::empty();
    let asked = |encoder: &str, out: &str, more: &[&str]| {
        let set = [
            "--train-cases",
            "24",
            "--test-cases",
            "8",
            "--format",
            "json",
        ];
        let args = [
            &["encoders", "--probe-only", encoder, "--out", out],
            &set[..],
            more,
        ]
        .concat();
        run(&folder, &imitation.hub.url(), &args)
    };
    let first = asked("owner/name@refs/pr/1", "first", &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    let row = |text: &str| serde_json::from_str::<Value>(text).unwrap()["rows"][0].clone();
    let found = row(&first.out);
    assert_eq!(found["encoder"], "owner/name@refs/pr/1");
    let stamp = serde_json::json!({"id": "owner/name", "revision": "refs/pr/1", "commit": COMMIT});
    assert_eq!(found["hub"], stamp);
    assert!(!imitation.hub.asked().is_empty());
    let stored = imitation.storage.asked();
    let decoy = sha256(&decoy);
    assert!(!stored.is_empty() && stored.iter().all(|a| !a.path.contains(&decoy)));
    let again = asked("owner/name@refs/pr/1", "again", &["--offline"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(row(&again.out)["figures"], found["figures"]);
    assert!(imitation.hub.asked().is_empty() && imitation.storage.asked().is_empty());
    for (encoder, more, told) in [
        (
            "owner/other",
            &[][..],
            "encoder owner/other: download failed",
        ),
        ("owner/name@v9", &[], "no revision `v9` (404)"),
        (
            "owner/name",
            &["--offline"],
            "--offline forbids access to the hub",
        ),
    ] {
        let said = asked(encoder, "bad", more);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(
            said.err.contains(told) && said.err.contains("hint: "),
            "{}",
            said.err
        );
    }
}

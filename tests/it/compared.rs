//! `acem3 encoders`, as it is typed.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

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
fn projectors_are_trained_and_panels_judge_through_them() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("compared");
    let budget = ["--steps", "1", "--batch", "2", "--test", "2"];
    let asked = [&["embedded", "random:4"][..], &budget].concat();
    let (code, stdout, stderr) = encoders(&out, &asked);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("judge on phantoms"), "{stdout}");
    assert!(stdout.contains("against embedded"), "{stdout}");
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
    assert!(stderr.contains("hint: name another folder"), "{stderr}");
}

#[test]
fn what_is_no_encoder_is_named() {
    let dir = TempDir::new().unwrap();
    for (name, fault) in [
        ("random:x", "not a seed"),
        ("no-such-folder", "no such folder"),
    ] {
        let (code, _, stderr) = encoders(dir.path(), &["--probe", name]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains(fault), "{stderr}");
    }
    let (code, _, stderr) = encoders(dir.path(), &["--steps", "0"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--steps"), "{stderr}");
}

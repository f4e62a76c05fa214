//! Panels whose members or vision towers are ids on the hub.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::folder::Folder;
use crate::hub_command::run;
use crate::mock_hub::{COMMIT, MockHub};

const MEMBERS: [&str; 4] = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];

fn golden(name: &str) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name)
}

fn read_files(name: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(golden(name)).unwrap();
    let read = |entry: Result<fs::DirEntry, _>| {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

/// Writes a checkpoint to the cache, as a download would.
fn write_to_cache(folder: &Folder, id: &str, name: &str) {
    let repo = format!("hf/hub/models--{}", id.replace('/', "--"));
    folder.write(&format!("{repo}/refs/main"), COMMIT);
    let snapshot = folder.path(&format!("{repo}/snapshots/{COMMIT}"));
    fs::create_dir_all(&snapshot).unwrap();
    for (file, bytes) in read_files(name) {
        fs::write(snapshot.join(file), bytes).unwrap();
    }
}

fn write_panel(folder: &Folder, members: [&str; 4]) {
    let pairs = MEMBERS.iter().zip(members);
    let lines: Vec<String> = pairs.map(|(key, id)| format!("{key} = {id}\n")).collect();
    let text = format!("schema = 1\nrubric = \"names\"\n[members]\n{}", lines.concat());
    folder.write("panel-of-four.toml", &text);
}

#[test]
fn members_and_their_vision_tower_load_from_the_hub() {
    let llava = read_files("llava-original");
    let llava: Vec<(&str, &[u8])> = llava.iter().map(|(n, b)| (n.as_str(), &b[..])).collect();
    let mock = MockHub::without_faults(&llava);
    let folder = Folder::with_cases(1);
    let text_only = "{ folder = \"owner/name\", text_only = true }";
    write_panel(&folder, [text_only, "\"owner/name\"", text_only, "\"owner/name\""]);
    let judge = |extra_args: &[&str]| {
        let fast_args = ["--scores-only", "--single-order", "--panel", "panel-of-four.toml"];
        let args = [&["judge", "cases", "--out", "out"], &fast_args[..], extra_args].concat();
        run(&folder, &mock.hub.url(), &args)
    };
    // The checkpoint is on the hub, but the vision tower in its configuration is not.
    let output = judge(&[]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    for word in ["vision tower `nobody/clip-tiny`", "hint: "] {
        assert!(output.stderr.contains(word), "{word}: {}", output.stderr);
    }
    write_to_cache(&folder, "nobody/clip-tiny", "clip-tiny");
    let output = judge(&["--offline"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let hub = &folder.manifest("out")["hub"];
    let checkpoints = hub.as_array().unwrap();
    let ids: Vec<&Value> = checkpoints.iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, ["owner/name", "nobody/clip-tiny"]);
    assert!(checkpoints.iter().all(|c| c["commit"] == COMMIT));
    assert_eq!(folder.records("out")[0]["status"], "judged");
}

#[test]
fn adapter_and_the_base_that_it_names_load_from_the_hub() {
    let folder = Folder::with_cases(1);
    write_to_cache(&folder, "owner/llava", "llava");
    write_to_cache(&folder, "owner/adapter", "../adapters/plain");
    let config = format!("hf/hub/models--owner--adapter/snapshots/{COMMIT}/adapter_config.json");
    let text = folder.read(&config).replace("../../checkpoints/llava", "owner/llava");
    folder.write(&config, &text);
    let args = ["judge", "cases", "--panel", "owner/adapter", "--offline", "--scores-only"];
    let output = run(&folder, "http://127.0.0.1:9", &[&args[..], &["--out", "out"]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let manifest = folder.manifest("out");
    let ids: Vec<&Value> =
        manifest["hub"].as_array().unwrap().iter().map(|source| &source["id"]).collect();
    assert_eq!(ids, ["owner/adapter", "owner/llava"]);
}

#[test]
fn member_that_is_not_cached_is_named() {
    let folder = Folder::with_cases(1);
    let local = format!("{:?}", golden("llava"));
    write_panel(&folder, [&local, &local, &local, "\"owner/absent@v2\""]);
    let args = ["panel", "inspect", "panel-of-four.toml", "--offline"];
    let output = run(&folder, "http://127.0.0.1:9", &args);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    for word in ["members.conclusion", "owner/absent@v2", "--offline", "hint: "] {
        assert!(output.stderr.contains(word), "{word}: {}", output.stderr);
    }
}

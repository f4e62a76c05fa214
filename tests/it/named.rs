//! Panels whose members, or the vision tower of a member, are ids on the hub.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::folder::Folder;
use crate::hub_peers::run;
use crate::imitation::{COMMIT, Imitation};

const MEMBERS: [&str; 4] = [
    "expression",
    "medical_knowledge",
    "patient_relevance",
    "conclusion",
];

fn golden(name: &str) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name)
}

fn files(name: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(golden(name)).unwrap();
    let read = |entry: Result<fs::DirEntry, _>| {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

/// Puts a checkpoint where an earlier download would have left it.
fn downloaded(folder: &Folder, id: &str, name: &str) {
    let repo = format!("hf/hub/models--{}", id.replace('/', "--"));
    folder.write(&format!("{repo}/refs/main"), COMMIT);
    let snapshot = folder.path(&format!("{repo}/snapshots/{COMMIT}"));
    fs::create_dir_all(&snapshot).unwrap();
    for (file, bytes) in files(name) {
        fs::write(snapshot.join(file), bytes).unwrap();
    }
}

fn panel(folder: &Folder, members: [&str; 4]) {
    let named = MEMBERS.iter().zip(members);
    let lines: Vec<String> = named.map(|(m, id)| format!("{m} = {id}\n")).collect();
    let text = format!(
        "schema = 1\nrubric = \"names\"\n[members]\n{}",
        lines.concat()
    );
    folder.write("panel-of-four.toml", &text);
}

#[test]
fn members_and_the_tower_that_they_name_come_from_the_hub() {
    let llava = files("llava-original");
    let llava: Vec<(&str, &[u8])> = llava.iter().map(|(n, b)| (n.as_str(), &b[..])).collect();
    let imitation = Imitation::good(&llava);
    let folder = Folder::of(1);
    let alone = "{ folder = \"owner/name\", text_only = true }";
    panel(&folder, [alone, "\"owner/name\"", alone, "\"owner/name\""]);
    let judge = |more: &[&str]| {
        let quick = [
            "--scores-only",
            "--single-order",
            "--panel",
            "panel-of-four.toml",
        ];
        let args = [&["judge", "cases", "--out", "out"], &quick[..], more].concat();
        run(&folder, &imitation.hub.url(), &args)
    };
    // The checkpoint is on the hub, the tower that its configuration names is not.
    let said = judge(&[]);
    assert_eq!(said.code, 2, "{}", said.err);
    for word in ["vision tower `nobody/clip-tiny`", "hint: "] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    downloaded(&folder, "nobody/clip-tiny", "clip-tiny");
    let said = judge(&["--offline"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let taken = &folder.manifest("out")["hub"];
    let ids: Vec<&Value> = taken.as_array().unwrap().iter().map(|t| &t["id"]).collect();
    assert_eq!(ids, ["owner/name", "nobody/clip-tiny"]);
    assert!(
        taken
            .as_array()
            .unwrap()
            .iter()
            .all(|t| t["commit"] == COMMIT)
    );
    assert_eq!(folder.records("out")[0]["status"], "judged");
}

#[test]
fn a_member_that_was_never_downloaded_is_named() {
    let folder = Folder::of(1);
    let here = format!("{:?}", golden("llava"));
    panel(&folder, [&here, &here, &here, "\"owner/absent@v2\""]);
    let args = ["panel", "inspect", "panel-of-four.toml", "--offline"];
    let said = run(&folder, "http://127.0.0.1:9", &args);
    assert_eq!(said.code, 2, "{}", said.err);
    for word in [
        "members.conclusion",
        "owner/absent@v2",
        "--offline",
        "hint: ",
    ] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
}

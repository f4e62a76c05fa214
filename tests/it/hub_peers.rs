//! The hub from the command line, and a cache shared with the Python tools.

#![expect(
    clippy::print_stdout,
    reason = "prints measurements and the reason for skipped tests"
)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use acem3::checkpoints::file_filter::FileFilter;
use acem3::checkpoints::hub::{Hub, HubError, HubSettings, RepoRef};

use crate::folder::{Folder, Said, said};
use crate::imitation::{Asked, COMMIT, Imitation, Reply, Server};

const MINI: [&str; 7] = [
    "panel.toml",
    "tokenizer.json",
    "trunk.safetensors",
    "expression.safetensors",
    "medical_knowledge.safetensors",
    "patient_relevance.safetensors",
    "conclusion.safetensors",
];

/// Runs the program with a hub and a cache, without other environment variables.
pub(crate) fn run(folder: &Folder, endpoint: &str, args: &[&str]) -> Said {
    let mut command = folder.command(args);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("HF_") || name == "TRANSFORMERS_OFFLINE" {
            command.env_remove(name);
        }
    }
    command
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HOME", folder.path("hf"));
    said(&command.output().unwrap())
}

#[test]
fn hub_panel_judges_and_records_its_commit() {
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    let files: Vec<(&str, Vec<u8>)> = MINI
        .iter()
        .map(|name| (*name, fs::read(mini.join(name)).unwrap()))
        .collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    let imitation = Imitation::good(&files);
    let folder = Folder::of(1);
    let judge = |out: &str, panel: &str, more: &[&str]| {
        let quick = ["--scores-only", "--single-order", "--panel", panel];
        let args = [&["judge", "cases", "--out", out], &quick[..], more].concat();
        run(&folder, &imitation.hub.url(), &args)
    };
    let first = judge("out", "owner/name@refs/pr/1", &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    let manifest = folder.manifest("out");
    assert_eq!(
        manifest["hub"],
        serde_json::json!([{"id": "owner/name", "revision": "refs/pr/1", "commit": COMMIT}])
    );
    imitation.hub.asked();
    let again = judge("again", "owner/name@refs/pr/1", &["--offline"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(imitation.hub.asked().is_empty());
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("again/records.jsonl")
    );
    let embedded = run(
        &folder,
        &imitation.hub.url(),
        &[
            "judge",
            "cases",
            "--out",
            "own",
            "--scores-only",
            "--single-order",
        ],
    );
    assert_eq!(embedded.code, 0, "{}", embedded.err);
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("own/records.jsonl")
    );
    assert!(folder.manifest("own").get("hub").is_none());
}

#[test]
fn failed_download_exits_2_with_hint() {
    let refuse = |asked: &Asked| {
        let gated = asked.path.contains("/gated");
        gated.then(|| Reply::refused(403, "GatedRepo"))
    };
    let imitation = Imitation::of(&[("config.json", b"{}")], Arc::new(refuse));
    let folder = Folder::of(1);
    for (panel, more, told) in [
        (
            "owner/gated",
            &[][..],
            "error: --panel owner/gated: download failed\n  because: owner/gated: access is gated (403)",
        ),
        (
            "owner/other",
            &[],
            "owner/other: not found, or private and no token is set (401)",
        ),
        ("owner/name@v9", &[], "owner/name: no revision `v9` (404)"),
        ("owner/name@a..b", &[], "`a..b` is not a valid revision"),
        (
            "bad--owner/name",
            &[],
            "`bad--owner/name` is not a repository id",
        ),
        (
            "owner/name",
            &[],
            "owner/name: no file *.safetensors, *.bin or *.gguf at main",
        ),
        (
            "owner/name",
            &["--offline"],
            "and --offline forbids access to the hub",
        ),
    ] {
        let args = [
            &["judge", "cases", "--out", "out", "--panel", panel][..],
            more,
        ]
        .concat();
        let said = run(&folder, &imitation.hub.url(), &args);
        assert_eq!(said.code, 2, "{panel}: {}", said.err);
        assert!(
            said.err.contains(told) && said.err.contains("hint: "),
            "{panel}: {}",
            said.err
        );
        assert!(
            said.err.lines().all(|line| line.len() < 400),
            "{}",
            said.err
        );
    }
    folder.write("blocked", "a file where the cache should be");
    let mut command = folder.command(&["judge", "cases", "--out", "out", "--panel", "owner/name"]);
    let files = [("config.json", &b"{}"[..]), ("a.bin", b"x")];
    let good = Imitation::good(&files);
    command
        .env("HF_ENDPOINT", good.hub.url())
        .env("HF_HUB_CACHE", folder.path("blocked"));
    let told = said(&command.output().unwrap());
    assert_eq!(told.code, 2, "{}", told.err);
    assert!(
        told.err.contains("blocked") && told.err.contains("hint: "),
        "{}",
        told.err
    );
}

#[test]
fn path_traversal_is_rejected() {
    let answer = |_: &Asked| {
        let listing = serde_json::json!({"id": "a/b", "sha": COMMIT, "siblings": [{"rfilename": "../../x.bin"}]});
        Reply::new(200, listing.to_string())
    };
    let server = Server::start(Arc::new(answer));
    let folder = Folder::of(1);
    let said = run(
        &folder,
        &server.url(),
        &["judge", "cases", "--out", "out", "--panel", "a/b"],
    );
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(
        said.err
            .contains("outside of the repository: `../../x.bin`"),
        "{}",
        said.err
    );
}

/// Returns a Python interpreter with `huggingface_hub`, if the user sets one.
fn python() -> Option<String> {
    let named = std::env::var("ACEM3_TEST_PYTHON").ok();
    if named.is_none() {
        println!("skipped: ACEM3_TEST_PYTHON is not a Python interpreter with huggingface_hub");
    }
    named
}

fn script(python: &str, endpoint: &str, cache: &Path, offline: bool) -> String {
    let code = "import sys\nfrom huggingface_hub import snapshot_download\n\
                print(snapshot_download('owner/name', allow_patterns=['*.json', '*.bin']))";
    let mut command = Command::new(python);
    command
        .args(["-c", code])
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HUB_CACHE", cache);
    command.env("HF_HUB_OFFLINE", if offline { "1" } else { "0" });
    command
        .env("HF_HUB_DISABLE_XET", "1")
        .env("HF_HUB_DISABLE_TELEMETRY", "1");
    let said = said(&command.output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    said.out.trim().to_owned()
}

#[test]
fn cache_is_shared_with_python_tools() {
    let Some(python) = python() else { return };
    let large = vec![3; 5000];
    let imitation = Imitation::good(&[("config.json", b"{}"), ("sub/model.bin", &large)]);
    let wanted = FileFilter::Patterns(vec!["*.json".to_owned(), "*.bin".to_owned()]);
    let repo = RepoRef::parse("owner/name").unwrap();
    let hub = |endpoint: String, cache: &Path, offline: bool| -> Result<_, HubError> {
        let variable = |name: &str| match name {
            "HF_ENDPOINT" => Some(endpoint.clone().into()),
            "HF_HUB_CACHE" => Some(cache.into()),
            _ => None,
        };
        let settings = HubSettings::read(&variable, offline)?;
        Hub::new(settings, true).snapshot(&repo, &wanted)
    };
    let nowhere = "http://127.0.0.1:9";

    let ours = tempfile::tempdir().unwrap();
    let found = hub(imitation.hub.url(), ours.path(), false).unwrap();
    let theirs = script(&python, nowhere, ours.path(), true);
    assert_eq!(
        Path::new(&theirs).canonicalize().unwrap(),
        found.folder.canonicalize().unwrap()
    );

    let cache = tempfile::tempdir().unwrap();
    let theirs = script(&python, &imitation.hub.url(), cache.path(), false);
    let found = hub(nowhere.to_owned(), cache.path(), true).unwrap();
    assert_eq!(
        Path::new(&theirs).canonicalize().unwrap(),
        found.folder.canonicalize().unwrap()
    );
    assert_eq!(fs::read(found.folder.join("sub/model.bin")).unwrap(), large);
    assert_eq!(found.stamp.commit, COMMIT);
}

#[test]
fn concurrent_processes_download_each_file_once() {
    let slow = |asked: &Asked| {
        if asked.path.starts_with("/blob/") {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        None
    };
    let large: Vec<u8> = (0..200_000_u32)
        .flat_map(|i| i.wrapping_mul(i).to_le_bytes())
        .collect();
    let imitation = Imitation::of(&[("a.bin", &large), ("b.json", b"{}")], Arc::new(slow));
    let folder = Folder::of(1);
    std::thread::scope(|scope| {
        for out in ["x", "y"] {
            let (folder, url) = (&folder, imitation.hub.url());
            scope.spawn(move || {
                let said = run(
                    folder,
                    &url,
                    &["judge", "cases", "--out", out, "--panel", "owner/name"],
                );
                // The file contains no weights, but its download is complete.
                assert_eq!(said.code, 2, "{}", said.err);
                assert!(said.err.contains("panel.toml"), "{}", said.err);
            });
        }
    });
    assert_eq!(imitation.storage.downloads().len(), 1);
}

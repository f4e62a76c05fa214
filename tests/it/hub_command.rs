//! Downloads started on the command line, and a cache shared with Python's `huggingface_hub`.

#![expect(clippy::print_stdout, reason = "prints measurements and the reason for skipped tests")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use acem3::checkpoints::file_filter::FileFilter;
use acem3::checkpoints::hub::{Hub, HubArgs, HubError, HubSettings, RepoRef};

use crate::folder::{Folder, ProgramOutput, program_output};
use crate::mock_hub::{COMMIT, MockHub, MockReply, MockServer, ReceivedRequest};

const PANEL_FILES: [&str; 7] = [
    "panel.toml",
    "tokenizer.json",
    "trunk.safetensors",
    "expression.safetensors",
    "medical_knowledge.safetensors",
    "patient_relevance.safetensors",
    "conclusion.safetensors",
];

/// Runs the program with a hub and a cache, without the user's other `HF_*` variables.
pub(crate) fn run(folder: &Folder, endpoint: &str, args: &[&str]) -> ProgramOutput {
    let mut command = folder.command(args);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("HF_") || name == "TRANSFORMERS_OFFLINE" {
            command.env_remove(name);
        }
    }
    command.env("HF_ENDPOINT", endpoint).env("HF_HOME", folder.path("hf"));
    program_output(&command.output().unwrap())
}

#[test]
fn hub_panel_judges_and_records_its_commit() {
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    let files: Vec<(&str, Vec<u8>)> =
        PANEL_FILES.iter().map(|name| (*name, fs::read(mini.join(name)).unwrap())).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    let mock = MockHub::without_faults(&files);
    let folder = Folder::with_cases(1);
    let judge = |out: &str, panel: &str, extra_args: &[&str]| {
        let quick = ["--scores-only", "--single-order", "--panel", panel];
        let args = [&["judge", "cases", "--out", out], &quick[..], extra_args].concat();
        run(&folder, &mock.hub.url(), &args)
    };
    let first = judge("out", "owner/name@refs/pr/1", &[]);
    assert_eq!(first.exit_code, 0, "{}", first.stderr);
    let manifest = folder.manifest("out");
    assert_eq!(
        manifest["hub"],
        serde_json::json!([{"id": "owner/name", "revision": "refs/pr/1", "commit": COMMIT}])
    );
    mock.hub.take_requests();
    let offline = judge("offline", "owner/name@refs/pr/1", &["--offline"]);
    assert_eq!(offline.exit_code, 0, "{}", offline.stderr);
    assert!(mock.hub.take_requests().is_empty());
    assert_eq!(folder.read("out/records.jsonl"), folder.read("offline/records.jsonl"));
    let embedded = run(
        &folder,
        &mock.hub.url(),
        &["judge", "cases", "--out", "embedded", "--scores-only", "--single-order"],
    );
    assert_eq!(embedded.exit_code, 0, "{}", embedded.stderr);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("embedded/records.jsonl"));
    assert!(folder.manifest("embedded").get("hub").is_none());
}

#[test]
fn failed_download_exits_2_with_hint() {
    let reject_gated = |request: &ReceivedRequest| {
        let is_gated = request.path.contains("/gated");
        is_gated.then(|| MockReply::error(403, "GatedRepo"))
    };
    let mock = MockHub::with_faults(&[("config.json", b"{}")], Arc::new(reject_gated));
    let folder = Folder::with_cases(1);
    for (panel, extra_args, expected) in [
        (
            "owner/gated",
            &[][..],
            "error: --panel owner/gated: download failed\n  because: owner/gated: access is gated (403)",
        ),
        ("owner/other", &[], "owner/other: not found, or private and no token is set (401)"),
        ("owner/name@v9", &[], "owner/name: no revision `v9` (404)"),
        (
            "owner/name@a..b",
            &[],
            "error: --panel owner/name@a..b: invalid hub id or revision\n  because: `a..b` is not a valid revision",
        ),
        ("bad--owner/name", &[], "`bad--owner/name` is not a repository id"),
        ("owner/name", &[], "owner/name: no file *.safetensors, *.bin or *.gguf at main"),
        (
            "owner/name",
            &["--offline"],
            "error: --panel owner/name: not in the cache\n  because: owner/name is not in the cache",
        ),
        ("owner/name", &["--offline"], "and --offline forbids access to the hub"),
    ] {
        let args = [&["judge", "cases", "--out", "out", "--panel", panel][..], extra_args].concat();
        let output = run(&folder, &mock.hub.url(), &args);
        assert_eq!(output.exit_code, 2, "{panel}: {}", output.stderr);
        assert!(
            output.stderr.contains(expected) && output.stderr.contains("hint: "),
            "{panel}: {}",
            output.stderr
        );
        assert!(output.stderr.lines().all(|line| line.len() < 400), "{}", output.stderr);
    }
    folder.write("blocked", "a file where the cache should be");
    let mut command = folder.command(&["judge", "cases", "--out", "out", "--panel", "owner/name"]);
    let files = [("config.json", &b"{}"[..]), ("a.bin", b"x")];
    let mock = MockHub::without_faults(&files);
    command.env("HF_ENDPOINT", mock.hub.url()).env("HF_HUB_CACHE", folder.path("blocked"));
    let output = program_output(&command.output().unwrap());
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("blocked") && output.stderr.contains("hint: "),
        "{}",
        output.stderr
    );
}

#[test]
fn path_traversal_is_rejected() {
    let reply = |_: &ReceivedRequest| {
        let listing = serde_json::json!({"id": "a/b", "sha": COMMIT, "siblings": [{"rfilename": "../../x.bin"}]});
        MockReply::new(200, listing.to_string())
    };
    let server = MockServer::start(Arc::new(reply));
    let folder = Folder::with_cases(1);
    let output = run(&folder, &server.url(), &["judge", "cases", "--out", "out", "--panel", "a/b"]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("outside of the repository: `../../x.bin`"),
        "{}",
        output.stderr
    );
}

/// Returns the Python interpreter with `huggingface_hub` that `ACEM3_TEST_PYTHON` names.
fn python() -> Option<String> {
    let interpreter = std::env::var("ACEM3_TEST_PYTHON").ok();
    if interpreter.is_none() {
        println!("skipped: ACEM3_TEST_PYTHON is not a Python interpreter with huggingface_hub");
    }
    interpreter
}

/// Downloads a snapshot with `huggingface_hub` and returns its folder.
fn snapshot_by_python(python: &str, endpoint: &str, cache: &Path, offline: bool) -> String {
    let code = "import sys\nfrom huggingface_hub import snapshot_download\n\
                print(snapshot_download('owner/name', allow_patterns=['*.json', '*.bin']))";
    let mut command = Command::new(python);
    command.args(["-c", code]).env("HF_ENDPOINT", endpoint).env("HF_HUB_CACHE", cache);
    command.env("HF_HUB_OFFLINE", if offline { "1" } else { "0" });
    command.env("HF_HUB_DISABLE_XET", "1").env("HF_HUB_DISABLE_TELEMETRY", "1");
    let output = program_output(&command.output().unwrap());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    output.stdout.trim().to_owned()
}

#[test]
fn cache_is_shared_with_huggingface_hub() {
    let Some(python) = python() else { return };
    let large = vec![3; 5000];
    let mock = MockHub::without_faults(&[("config.json", b"{}"), ("sub/model.bin", &large)]);
    let filter = FileFilter::Patterns(vec!["*.json".to_owned(), "*.bin".to_owned()]);
    let repo = RepoRef::parse("owner/name").unwrap();
    let hub = |endpoint: String, cache: &Path, offline: bool| -> Result<_, HubError> {
        let variable = |name: &str| match name {
            "HF_ENDPOINT" => Some(endpoint.clone().into()),
            "HF_HUB_CACHE" => Some(cache.into()),
            _ => None,
        };
        let flags = HubArgs { offline, allow_http: false };
        let settings = HubSettings::read(&variable, flags)?;
        Hub::new(settings, true).snapshot(&repo, &filter)
    };
    let unreachable = "http://127.0.0.1:9";

    let cache = tempfile::tempdir().unwrap();
    let snapshot = hub(mock.hub.url(), cache.path(), false).unwrap();
    let python_folder = snapshot_by_python(&python, unreachable, cache.path(), true);
    assert_eq!(
        Path::new(&python_folder).canonicalize().unwrap(),
        snapshot.folder.canonicalize().unwrap()
    );

    let cache = tempfile::tempdir().unwrap();
    let python_folder = snapshot_by_python(&python, &mock.hub.url(), cache.path(), false);
    let snapshot = hub(unreachable.to_owned(), cache.path(), true).unwrap();
    assert_eq!(
        Path::new(&python_folder).canonicalize().unwrap(),
        snapshot.folder.canonicalize().unwrap()
    );
    assert_eq!(fs::read(snapshot.folder.join("sub/model.bin")).unwrap(), large);
    assert_eq!(snapshot.source.commit, COMMIT);
}

#[test]
fn concurrent_processes_download_each_file_once() {
    let slow = |request: &ReceivedRequest| {
        if request.path.starts_with("/blob/") {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        None
    };
    let large: Vec<u8> = (0..200_000_u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
    let mock = MockHub::with_faults(&[("a.bin", &large), ("b.json", b"{}")], Arc::new(slow));
    let folder = Folder::with_cases(1);
    std::thread::scope(|scope| {
        for out in ["x", "y"] {
            let (folder, url) = (&folder, mock.hub.url());
            scope.spawn(move || {
                let output =
                    run(folder, &url, &["judge", "cases", "--out", out, "--panel", "owner/name"]);
                // The file contains no weights, but its download is complete.
                assert_eq!(output.exit_code, 2, "{}", output.stderr);
                assert!(output.stderr.contains("panel.toml"), "{}", output.stderr);
            });
        }
    });
    assert_eq!(mock.storage.take_downloads().len(), 1);
}

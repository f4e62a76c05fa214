//! Downloads of snapshots from a working hub and from hubs that return errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3::checkpoints::file_filter::FileFilter;
use acem3::checkpoints::hub::{
    Hub, HubError, HubErrorKind, HubSettings, RepoRef, RetryPolicy, Snapshot,
};
use acem3::support::network::access_token::AccessToken;
use acem3::support::network::service_url::{ServiceUrl, UrlRules};

use crate::mock_hub::{
    COMMIT, MockHub, MockReply, MockServer, ReceivedRequest, content_hash, sha256,
};

pub(crate) const CONFIG: &[u8] = b"{\"model_type\": \"llava\"}";

/// Returns 300,000 bytes without a repeating pattern, used as weights.
pub(crate) fn weights() -> Vec<u8> {
    (0_u32..75_000).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

pub(crate) fn service_url(text: &str) -> ServiceUrl {
    ServiceUrl::parse(text, UrlRules { key_variable: "HF_TOKEN", allow_http: false }).unwrap()
}

pub(crate) fn settings(endpoint: &str, cache: &Path) -> HubSettings {
    HubSettings {
        endpoint: service_url(endpoint),
        allow_http: false,
        cache: cache.to_owned(),
        token: AccessToken::new("hf_secret"),
        offline: None,
        symlinks: true,
        retry: RetryPolicy {
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(5),
            metadata_timeout: Duration::from_secs(20),
            slow_timeout: Duration::from_secs(20),
            attempts: 3,
            pause: Duration::from_millis(1),
        },
    }
}

pub(crate) fn fetch(settings: &HubSettings, id: &str) -> Result<Snapshot, HubError> {
    let repo = RepoRef::parse(id)?;
    Hub::new(settings.clone(), true).snapshot(&repo, &FileFilter::Panel)
}

/// Returns the paths of all files in a folder and its subfolders.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            paths.extend(files_in(&entry.path()));
        } else {
            paths.push(entry.path());
        }
    }
    paths
}

#[test]
fn snapshot_has_the_layout_of_huggingface_hub() {
    let large = weights();
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &large[..]),
        ("pytorch_model.bin", b"not wanted"),
        ("README.md", b"not wanted"),
    ];
    let mock = MockHub::without_faults(&files);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&mock.hub.url(), dir.path());
    let snapshot = fetch(&settings, "owner/name").unwrap();
    let repo = dir.path().join("models--owner--name");
    assert_eq!(snapshot.folder, repo.join("snapshots").join(COMMIT));
    assert_eq!(
        (snapshot.source.revision.as_str(), snapshot.source.commit.as_str()),
        ("main", COMMIT)
    );
    assert_eq!(fs::read(snapshot.folder.join("model.safetensors")).unwrap(), large);
    assert_eq!(fs::read(snapshot.folder.join("config.json")).unwrap(), CONFIG);
    assert_eq!(files_in(&snapshot.folder).len(), 2);
    assert_eq!(fs::read_to_string(repo.join("refs/main")).unwrap(), COMMIT);
    assert!(repo.join(format!("listings/{COMMIT}.json")).is_file());
    let mut blobs: Vec<String> = files_in(&repo.join("blobs"))
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    blobs.sort();
    let mut hashes = [content_hash(CONFIG), content_hash(&large)];
    hashes.sort();
    assert_eq!(blobs, hashes);
    #[cfg(unix)]
    {
        let link = fs::read_link(snapshot.folder.join("model.safetensors")).unwrap();
        assert_eq!(link, Path::new("../../blobs").join(sha256(&large)));
    }
    // The token is sent to the hub, but not to hosts that the hub redirects to.
    assert!(
        mock.hub
            .take_requests()
            .iter()
            .all(|request| request.header("authorization") == Some("Bearer hf_secret"))
    );
    let requests = mock.storage.take_requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));

    // Cached files are not requested again. A commit hash or --offline needs no request at all.
    assert_eq!(fetch(&settings, "owner/name").unwrap(), snapshot);
    assert_eq!(mock.hub.take_requests().len(), 1);
    assert_eq!(fetch(&settings, &format!("owner/name@{COMMIT}")).unwrap().folder, snapshot.folder);
    settings.offline = Some("--offline");
    assert_eq!(fetch(&settings, "owner/name").unwrap(), snapshot);
    assert!(mock.hub.take_requests().is_empty() && mock.storage.take_requests().is_empty());
    settings.offline = None;
    let pull_request = fetch(&settings, "owner/name@refs/pr/1").unwrap();
    assert_eq!(pull_request.folder, snapshot.folder);
    assert_eq!(fs::read_to_string(repo.join("refs/refs/pr/1")).unwrap(), COMMIT);
}

#[test]
fn snapshot_supports_subfolders_with_and_without_symlinks() {
    let large = weights();
    let mock = MockHub::without_faults(&[("a/b/model.bin", &large[..]), ("a/c.json", CONFIG)]);
    for symlinks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let settings = HubSettings { symlinks, ..settings(&mock.hub.url(), dir.path()) };
        let filter = FileFilter::Patterns(vec!["a/c.json".to_owned(), "*.bin".to_owned()]);
        let repo = RepoRef::parse("owner/name").unwrap();
        let snapshot = Hub::new(settings, true).snapshot(&repo, &filter).unwrap();
        let path = snapshot.folder.join("a/b/model.bin");
        assert_eq!(fs::read(&path).unwrap(), large);
        assert_eq!(fs::symlink_metadata(&path).unwrap().is_symlink(), symlinks && cfg!(unix));
        assert_eq!(fs::read(snapshot.folder.join("a/c.json")).unwrap(), CONFIG);
    }
}

#[test]
fn hub_errors_are_distinguished() {
    let cases = [
        (401, "GatedRepo", "access is gated (401)"),
        (403, "GatedRepo", "access is gated (403)"),
        (401, "", "the hub rejects the token (401)"),
        (403, "", "access is forbidden (403)"),
        (404, "RepoNotFound", "no such repository (404)"),
        (404, "RevisionNotFound", "no revision `main` (404)"),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (status, code, expected) in cases {
        let server =
            MockServer::start(Arc::new(move |_: &ReceivedRequest| MockReply::error(status, code)));
        let error = fetch(&settings(&server.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind, HubErrorKind::Rejected, "{status} {code}: {text}");
        assert!(text.contains(expected), "{status} {code}: {text}");
        assert!(text.contains("owner/name") && text.contains("hint:"), "{text}");
        assert!(!text.contains("hf_secret"), "{text}");
        assert_eq!(server.take_requests().len(), 1, "{status} {code}: expected no retry");
    }
    let mock = MockHub::without_faults(&[("config.json", CONFIG), ("a.bin", b"x")]);
    let mut anonymous = settings(&mock.hub.url(), dir.path());
    anonymous.token = None;
    let error = fetch(&anonymous, "owner/other").unwrap_err();
    assert!(error.to_string().contains("no token is set (401)"), "{error}");
    let error = fetch(&anonymous, "owner/name@v9").unwrap_err();
    assert!(error.to_string().contains("no revision `v9`"), "{error}");
    assert!(files_in(dir.path()).is_empty(), "expected no files after rejected downloads");
}

#[test]
fn busy_hub_is_retried_before_using_the_cache() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    // The hub is busy for the first two calls, and again after call 100.
    let busy_at_first = move |request: &ReceivedRequest| {
        let call = counter.fetch_add(1, Ordering::SeqCst);
        let is_busy = request.path.starts_with("/api/") && !(2..=100).contains(&call);
        is_busy.then(|| MockReply::new(503, "busy"))
    };
    let mock =
        MockHub::with_faults(&[("config.json", CONFIG), ("a.bin", b"x")], Arc::new(busy_at_first));
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&mock.hub.url(), dir.path());
    let snapshot = fetch(&settings, "owner/name").unwrap();
    calls.store(200, Ordering::SeqCst);
    assert_eq!(fetch(&settings, "owner/name").unwrap(), snapshot);
    let empty = tempfile::tempdir().unwrap();
    let without_cache = HubSettings { cache: empty.path().to_owned(), ..settings };
    mock.hub.take_requests();
    let error = fetch(&without_cache, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable);
    assert!(error.to_string().contains("(503)"), "{error}");
    assert_eq!(mock.hub.take_requests().len(), 3);
    let unreachable = HubSettings { endpoint: service_url("http://127.0.0.1:9"), ..without_cache };
    let error = fetch(&unreachable, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable);
    assert!(error.to_string().contains("the connection to http://127.0.0.1:9 failed"), "{error}");
}

#[test]
fn redirects_to_other_hosts_omit_the_token() {
    let files = [("config.json", CONFIG), ("a.bin", b"x")];
    let mock = MockHub::without_faults(&files);
    let target = mock.hub.url();
    let redirect = move |request: &ReceivedRequest| {
        MockReply::new(307, "").with_header("Location", target.clone() + &request.path)
    };
    let redirecting = MockServer::start(Arc::new(redirect));
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(&settings(&redirecting.url(), dir.path()), "owner/name").unwrap_err();
    assert!(error.to_string().contains("has no hash"), "{error}");
    let has_token = |request: &ReceivedRequest| request.header("authorization").is_some();
    let requests = redirecting.take_requests();
    assert!(requests.len() >= 2 && requests.iter().all(has_token));
    let requests = mock.hub.take_requests();
    assert!(!requests.is_empty() && !requests.iter().any(has_token));
}

#[test]
fn offline_error_names_missing_snapshot_file() {
    let files = [("config.json", CONFIG), ("a.bin", b"x"), ("b.bin", b"y")];
    let mock = MockHub::without_faults(&files);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&mock.hub.url(), dir.path());
    let snapshot = fetch(&settings, "owner/name").unwrap();
    fs::remove_file(snapshot.folder.join("b.bin")).unwrap();
    settings.offline = Some("--offline");
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::NotCached);
    let text = error.to_string();
    assert!(text.contains("owner/name: b.bin is not in the cache"), "{text}");
    assert!(text.contains("hint: run the same command once with access to the hub"), "{text}");
    mock.hub.take_requests();
    settings.offline = None;
    assert_eq!(fetch(&settings, "owner/name").unwrap(), snapshot);
    assert!(
        mock.hub
            .take_requests()
            .iter()
            .all(|request| request.method != "GET" || request.path.starts_with("/api/"))
    );
}

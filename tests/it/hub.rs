//! Snapshots from a working hub and from hubs that return errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3::checkpoints::file_filter::FileFilter;
use acem3::checkpoints::hub::{
    AccessToken, Hub, HubError, HubErrorKind, HubSettings, RepoRef, RetryPolicy, Snapshot,
};

use crate::imitation::{Asked, COMMIT, Imitation, Reply, Server, hash, sha256};

pub(crate) const CONFIG: &[u8] = b"{\"model_type\": \"llava\"}";

/// Weights of 300,000 non-repeating bytes.
pub(crate) fn weights() -> Vec<u8> {
    (0_u32..75_000)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

pub(crate) fn settings(endpoint: String, cache: &Path) -> HubSettings {
    HubSettings {
        endpoint,
        cache: cache.to_owned(),
        token: AccessToken::new("hf_secret"),
        offline: None,
        symlinks: true,
        retry: RetryPolicy {
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(5),
            attempts: 3,
            pause: Duration::from_millis(1),
        },
    }
}

pub(crate) fn fetch(settings: &HubSettings, id: &str) -> Result<Snapshot, HubError> {
    let repo = RepoRef::parse(id)?;
    Hub::new(settings.clone(), true).snapshot(&repo, &FileFilter::Panel)
}

/// Returns all files in a folder by path.
pub(crate) fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(all(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn snapshot_has_layout_of_python_tools() {
    let large = weights();
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &large[..]),
        ("pytorch_model.bin", b"not wanted"),
        ("README.md", b"not wanted"),
    ];
    let imitation = Imitation::good(&files);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(imitation.hub.url(), dir.path());
    let found = fetch(&settings, "owner/name").unwrap();
    let repo = dir.path().join("models--owner--name");
    assert_eq!(found.folder, repo.join("snapshots").join(COMMIT));
    assert_eq!(
        (found.stamp.revision.as_str(), found.stamp.commit.as_str()),
        ("main", COMMIT)
    );
    assert_eq!(
        fs::read(found.folder.join("model.safetensors")).unwrap(),
        large
    );
    assert_eq!(fs::read(found.folder.join("config.json")).unwrap(), CONFIG);
    assert_eq!(all(&found.folder).len(), 2);
    assert_eq!(fs::read_to_string(repo.join("refs/main")).unwrap(), COMMIT);
    assert!(repo.join(format!("listings/{COMMIT}.json")).is_file());
    let mut blobs: Vec<String> = all(&repo.join("blobs"))
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    blobs.sort();
    let mut hashes = [hash(CONFIG), hash(&large)];
    hashes.sort();
    assert_eq!(blobs, hashes);
    #[cfg(unix)]
    {
        let link = fs::read_link(found.folder.join("model.safetensors")).unwrap();
        assert_eq!(link, Path::new("../../blobs").join(sha256(&large)));
    }
    // The token is sent to the hub, but not to hosts that the hub redirects to.
    assert!(
        imitation
            .hub
            .asked()
            .iter()
            .all(|a| a.header("authorization") == Some("Bearer hf_secret"))
    );
    let stored = imitation.storage.asked();
    assert!(!stored.is_empty() && stored.iter().all(|a| a.header("authorization").is_none()));

    // Cached files are not requested again; a commit and --offline need no hub.
    assert_eq!(fetch(&settings, "owner/name").unwrap(), found);
    assert_eq!(imitation.hub.asked().len(), 1);
    assert_eq!(
        fetch(&settings, &format!("owner/name@{COMMIT}"))
            .unwrap()
            .folder,
        found.folder
    );
    settings.offline = Some("--offline");
    assert_eq!(fetch(&settings, "owner/name").unwrap(), found);
    assert!(imitation.hub.asked().is_empty() && imitation.storage.asked().is_empty());
    settings.offline = None;
    let other = fetch(&settings, "owner/name@refs/pr/1").unwrap();
    assert_eq!(other.folder, found.folder);
    assert_eq!(
        fs::read_to_string(repo.join("refs/refs/pr/1")).unwrap(),
        COMMIT
    );
}

#[test]
fn snapshot_supports_subfolders_and_copies() {
    let large = weights();
    let imitation = Imitation::good(&[("a/b/model.bin", &large[..]), ("a/c.json", CONFIG)]);
    for symlinks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let settings = HubSettings {
            symlinks,
            ..settings(imitation.hub.url(), dir.path())
        };
        let wanted = FileFilter::Patterns(vec!["a/c.json".to_owned(), "*.bin".to_owned()]);
        let repo = RepoRef::parse("owner/name").unwrap();
        let found = Hub::new(settings, true).snapshot(&repo, &wanted).unwrap();
        let path = found.folder.join("a/b/model.bin");
        assert_eq!(fs::read(&path).unwrap(), large);
        assert_eq!(
            fs::symlink_metadata(&path).unwrap().is_symlink(),
            symlinks && cfg!(unix)
        );
        assert_eq!(fs::read(found.folder.join("a/c.json")).unwrap(), CONFIG);
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
        let server = Server::start(Arc::new(move |_: &Asked| Reply::refused(status, code)));
        let error = fetch(&settings(server.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind, HubErrorKind::Refused, "{status} {code}: {text}");
        assert!(text.contains(expected), "{status} {code}: {text}");
        assert!(
            text.contains("owner/name") && text.contains("hint:"),
            "{text}"
        );
        assert!(!text.contains("hf_secret"), "{text}");
        assert_eq!(
            server.asked().len(),
            1,
            "{status} {code} is not tried again"
        );
    }
    let imitation = Imitation::good(&[("config.json", CONFIG), ("a.bin", b"x")]);
    let mut anonymous = settings(imitation.hub.url(), dir.path());
    anonymous.token = None;
    let error = fetch(&anonymous, "owner/other").unwrap_err();
    assert!(
        error.to_string().contains("no token is set (401)"),
        "{error}"
    );
    let error = fetch(&anonymous, "owner/name@v9").unwrap_err();
    assert!(error.to_string().contains("no revision `v9`"), "{error}");
    assert!(
        all(dir.path()).is_empty(),
        "rejected downloads must not leave files"
    );
}

#[test]
fn busy_hub_is_retried_before_using_the_cache() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let mischief = move |asked: &Asked| {
        let nth = seen.fetch_add(1, Ordering::SeqCst);
        let busy = asked.path.starts_with("/api/") && !(2..=100).contains(&nth);
        busy.then(|| Reply::new(503, "busy"))
    };
    let imitation = Imitation::of(
        &[("config.json", CONFIG), ("a.bin", b"x")],
        Arc::new(mischief),
    );
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(imitation.hub.url(), dir.path());
    let found = fetch(&settings, "owner/name").unwrap();
    calls.store(200, Ordering::SeqCst);
    assert_eq!(fetch(&settings, "owner/name").unwrap(), found);
    let empty = tempfile::tempdir().unwrap();
    let elsewhere = HubSettings {
        cache: empty.path().to_owned(),
        ..settings
    };
    imitation.hub.asked();
    let error = fetch(&elsewhere, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable);
    assert!(error.to_string().contains("(503)"), "{error}");
    assert_eq!(imitation.hub.asked().len(), 3);
    let closed = HubSettings {
        endpoint: "http://127.0.0.1:9".to_owned(),
        ..elsewhere
    };
    let error = fetch(&closed, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable);
    assert!(
        error
            .to_string()
            .contains("the connection to http://127.0.0.1:9 failed"),
        "{error}"
    );
}

#[test]
fn redirects_to_other_hosts_omit_the_token() {
    let files = [("config.json", CONFIG), ("a.bin", b"x")];
    let imitation = Imitation::good(&files);
    let target = imitation.hub.url();
    let answer =
        move |asked: &Asked| Reply::new(307, "").with("Location", target.clone() + &asked.path);
    let door = Server::start(Arc::new(answer));
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(&settings(door.url(), dir.path()), "owner/name").unwrap_err();
    assert!(error.to_string().contains("states no hash"), "{error}");
    let asked = door.asked();
    assert!(asked.len() >= 2 && asked.iter().all(|a| a.header("authorization").is_some()));
    let asked = imitation.hub.asked();
    assert!(!asked.is_empty() && asked.iter().all(|a| a.header("authorization").is_none()));
}

#[test]
fn offline_error_names_missing_snapshot_file() {
    let files = [("config.json", CONFIG), ("a.bin", b"x"), ("b.bin", b"y")];
    let imitation = Imitation::good(&files);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(imitation.hub.url(), dir.path());
    let found = fetch(&settings, "owner/name").unwrap();
    fs::remove_file(found.folder.join("b.bin")).unwrap();
    settings.offline = Some("--offline");
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::MissingFile);
    let text = error.to_string();
    assert!(
        text.contains("owner/name: b.bin is not in the cache"),
        "{text}"
    );
    assert!(
        text.contains("hint: run the same command once with access to the hub"),
        "{text}"
    );
    imitation.hub.asked();
    settings.offline = None;
    assert_eq!(fetch(&settings, "owner/name").unwrap(), found);
    assert!(
        imitation
            .hub
            .asked()
            .iter()
            .all(|a| a.method != "GET" || a.path.starts_with("/api/"))
    );
}

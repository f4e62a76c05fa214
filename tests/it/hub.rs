//! Downloads from a hub that does what it should, and from hubs that do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3::hub::{Hub, HubError, Patience, RepoRef, Settings, Snapshot, Token, Wanted};

use crate::imitation::{Asked, COMMIT, Imitation, Reply, Server, hash, sha256};

const CONFIG: &[u8] = b"{\"model_type\": \"llava\"}";

/// Weights of 300,000 bytes that do not repeat.
fn weights() -> Vec<u8> {
    (0_u32..75_000)
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

fn settings(endpoint: String, cache: &Path) -> Settings {
    Settings {
        endpoint,
        cache: cache.to_owned(),
        token: Token::new("hf_secret"),
        offline: None,
        symlinks: true,
        patience: Patience {
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            tries: 3,
            pause: Duration::from_millis(1),
        },
    }
}

fn fetch(settings: &Settings, id: &str) -> Result<Snapshot, HubError> {
    let repo = RepoRef::parse(id)?;
    Hub::new(settings.clone(), true)?.snapshot(&repo, &Wanted::Panel)
}

/// All files below a folder, by their paths.
fn all(folder: &Path) -> Vec<PathBuf> {
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

fn bad_content(
    reply: impl Fn(&Asked, Vec<u8>) -> Option<Reply> + Send + Sync + 'static,
) -> Imitation {
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &weights()[..]),
    ];
    let mischief = move |asked: &Asked| {
        let content = asked.path.starts_with("/blob/");
        content.then(|| reply(asked, weights())).flatten()
    };
    Imitation::of(&files, Arc::new(mischief))
}

#[test]
fn a_repository_becomes_a_snapshot_in_the_layout_of_the_python_tools() {
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
    assert!(repo.join(format!("trees/{COMMIT}.json")).is_file());
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
    // The token goes to the hub, and to nobody the hub sends us to.
    assert!(
        imitation
            .hub
            .asked()
            .iter()
            .all(|a| a.header("authorization") == Some("Bearer hf_secret"))
    );
    let stored = imitation.storage.asked();
    assert!(!stored.is_empty() && stored.iter().all(|a| a.header("authorization").is_none()));

    // What is there is not asked for again; a commit and --offline need no hub at all.
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
fn files_in_folders_and_copies_instead_of_links() {
    let large = weights();
    let imitation = Imitation::good(&[("a/b/model.bin", &large[..]), ("a/c.json", CONFIG)]);
    for symlinks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            symlinks,
            ..settings(imitation.hub.url(), dir.path())
        };
        let wanted = Wanted::Files(vec!["a/c.json".to_owned(), "*.bin".to_owned()]);
        let repo = RepoRef::parse("owner/name").unwrap();
        let found = Hub::new(settings, true)
            .unwrap()
            .snapshot(&repo, &wanted)
            .unwrap();
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
fn a_broken_download_goes_on_where_it_broke() {
    // Every connection ends after 100,000 bytes.
    let imitation = bad_content(|asked, bytes| {
        let mut reply = Reply::content(asked, &bytes);
        reply.cut = Some(100_000);
        Some(reply)
    });
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(imitation.hub.url(), dir.path());
    let found = fetch(&settings, "owner/name").unwrap();
    assert_eq!(
        fs::read(found.folder.join("model.safetensors")).unwrap(),
        weights()
    );
    let starts: Vec<usize> = imitation.storage.asked().iter().map(Asked::from).collect();
    assert_eq!(starts, [0, 100_000, 200_000]);

    // Another process goes on too.
    let dir = tempfile::tempdir().unwrap();
    settings.cache = dir.path().to_owned();
    let down = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&down);
    let imitation = bad_content(move |asked, bytes| {
        let mut reply = Reply::content(asked, &bytes);
        match seen.fetch_add(1, Ordering::SeqCst) {
            0 => reply.cut = Some(120_000),
            1..=3 => reply = Reply::new(503, "busy"),
            _ => {}
        }
        Some(reply)
    });
    settings.endpoint = imitation.hub.url();
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
    assert!(!dir.path().join("models--owner--name/snapshots").exists());
    let torn = dir
        .path()
        .join("models--owner--name/blobs")
        .join(sha256(&weights()) + ".incomplete");
    assert_eq!(fs::metadata(&torn).unwrap().len(), 120_000);
    imitation.storage.asked();
    let found = fetch(&settings, "owner/name").unwrap();
    assert_eq!(imitation.storage.asked()[0].from(), 120_000);
    assert_eq!(
        fs::read(found.folder.join("model.safetensors")).unwrap(),
        weights()
    );
    assert!(!torn.exists());
}

#[test]
fn a_server_that_cannot_resume_starts_anew() {
    let calls = AtomicUsize::new(0);
    let imitation = bad_content(move |_, bytes| {
        let mut reply = Reply::new(200, bytes);
        reply.cut = (calls.fetch_add(1, Ordering::SeqCst) == 0).then_some(50_000);
        Some(reply)
    });
    let dir = tempfile::tempdir().unwrap();
    let found = fetch(&settings(imitation.hub.url(), dir.path()), "owner/name").unwrap();
    assert_eq!(
        fs::read(found.folder.join("model.safetensors")).unwrap(),
        weights()
    );
}

#[test]
fn what_another_left_behind_is_checked_and_replaced() {
    let imitation = bad_content(|_, _| None);
    let dir = tempfile::tempdir().unwrap();
    let blobs = dir.path().join("models--owner--name/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let torn = blobs.join(sha256(&weights()) + ".incomplete");
    for left in [vec![7; 1000], vec![7; 300_000], vec![7; 300_001]] {
        let _ = fs::remove_file(blobs.join(sha256(&weights())));
        fs::write(&torn, left).unwrap();
        let found = fetch(&settings(imitation.hub.url(), dir.path()), "owner/name").unwrap();
        assert_eq!(
            fs::read(found.folder.join("model.safetensors")).unwrap(),
            weights()
        );
        assert!(!torn.exists());
    }
}

#[test]
fn wrong_bytes_and_sizes_are_refused() {
    type Lie = fn(&Asked, Vec<u8>) -> Option<Reply>;
    let lies: [(&str, Lie); 4] = [
        ("sha256", |asked, mut bytes| {
            bytes[123_456] ^= 1;
            Some(Reply::content(asked, &bytes))
        }),
        ("sends 299999", |asked, bytes| {
            Some(Reply::content(asked, &bytes[1..]))
        }),
        ("sends 300001", |asked, mut bytes| {
            bytes.push(0);
            Some(Reply::content(asked, &bytes))
        }),
        ("sends at least 30", |asked, mut bytes| {
            bytes.extend([0; 9000]);
            let mut reply = Reply::content(asked, &bytes);
            reply.length = false;
            Some(reply)
        }),
    ];
    for (told, lie) in lies {
        let imitation = bad_content(lie);
        let dir = tempfile::tempdir().unwrap();
        let error = fetch(&settings(imitation.hub.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(told) && text.contains("model.safetensors") && text.contains("hint:"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        let left = all(&dir.path().join("models--owner--name/blobs"));
        assert_eq!(left.len(), 1, "{told}: only the configuration: {left:?}");
        assert!(
            !dir.path().join("models--owner--name/snapshots").exists(),
            "{told}"
        );
        assert!(
            !dir.path().join("models--owner--name/refs").exists(),
            "{told}"
        );
    }
}

#[test]
fn a_hub_that_contradicts_itself_is_refused() {
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &weights()[..]),
    ];
    for (name, value, told) in [
        (
            "X-Linked-Size",
            "299999".to_owned(),
            "lists 300000 bytes and states 299999",
        ),
        (
            "X-Linked-Etag",
            format!("\"{}\"", "0".repeat(64)),
            "lists the hash",
        ),
        ("X-Repo-Commit", "f".repeat(40), "the hub answers for ffff"),
    ] {
        let mischief = move |asked: &Asked| {
            let head = asked.method == "HEAD" && asked.path.ends_with("model.safetensors");
            let size = weights().len().to_string();
            head.then(|| {
                Reply::new(302, "")
                    .with("X-Repo-Commit", COMMIT)
                    .with("X-Linked-Etag", sha256(&weights()))
                    .with("X-Linked-Size", size)
                    .with("Location", "http://127.0.0.1:9/")
                    .with(name, value.clone())
            })
        };
        let imitation = Imitation::of(&files, Arc::new(mischief));
        let dir = tempfile::tempdir().unwrap();
        let error = fetch(&settings(imitation.hub.url(), dir.path()), "owner/name").unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(imitation.storage.asked().is_empty());
    }
}

#[test]
fn refusals_are_told_apart() {
    type Kind = fn(&HubError) -> bool;
    let cases: [(u16, &str, Kind); 6] = [
        (401, "GatedRepo", |e| {
            matches!(e, HubError::Gated { status: 401, .. })
        }),
        (403, "GatedRepo", |e| {
            matches!(e, HubError::Gated { status: 403, .. })
        }),
        (401, "", |e| matches!(e, HubError::BadToken { .. })),
        (403, "", |e| matches!(e, HubError::Forbidden { .. })),
        (404, "RepoNotFound", |e| {
            matches!(e, HubError::NotFound { .. })
        }),
        (404, "RevisionNotFound", |e| {
            matches!(e, HubError::NoRevision { .. })
        }),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (status, code, is_it) in cases {
        let server = Server::start(Arc::new(move |_: &Asked| Reply::refused(status, code)));
        let error = fetch(&settings(server.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert!(is_it(&error), "{status} {code}: {text}");
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
    let mut nobody = settings(imitation.hub.url(), dir.path());
    nobody.token = None;
    let error = fetch(&nobody, "owner/other").unwrap_err();
    assert!(matches!(error, HubError::NeedsToken { .. }), "{error}");
    let error = fetch(&nobody, "owner/name@v9").unwrap_err();
    assert!(error.to_string().contains("no revision `v9`"), "{error}");
    assert!(all(dir.path()).is_empty(), "a refusal leaves nothing");
}

#[test]
fn a_busy_hub_is_asked_again_and_then_the_cache_stands_in() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let mischief = move |asked: &Asked| {
        let nth = seen.fetch_add(1, Ordering::SeqCst);
        let busy = asked.path.starts_with("/api/") && (nth < 2 || nth > 100);
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
    let elsewhere = Settings {
        cache: empty.path().to_owned(),
        ..settings
    };
    imitation.hub.asked();
    let error = fetch(&elsewhere, "owner/name").unwrap_err();
    assert!(
        matches!(error, HubError::Status { status: 503, .. }),
        "{error}"
    );
    assert_eq!(imitation.hub.asked().len(), 3);
    let closed = Settings {
        endpoint: "http://127.0.0.1:9".to_owned(),
        ..elsewhere
    };
    let error = fetch(&closed, "owner/name").unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
}

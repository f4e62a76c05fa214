//! Downloads with broken connections, wrong server responses and full disks.

#![expect(
    clippy::print_stdout,
    reason = "prints measurements and the reason for skipped tests"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3::checkpoints::hub::HubErrorKind;

use crate::hub::{CONFIG, all, fetch, settings, weights};
use crate::imitation::{Asked, COMMIT, Imitation, Reply, sha256};

/// Starts a hub whose storage uses the given responses, or the normal response if none is given.
fn bad_content(
    reply: impl Fn(&Asked, Vec<u8>) -> Option<Reply> + Send + Sync + 'static,
) -> Imitation {
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &weights()[..]),
    ];
    let mischief = move |asked: &Asked| {
        let content = asked.path.starts_with("/blob/") && asked.method == "GET";
        content.then(|| reply(asked, weights())).flatten()
    };
    Imitation::of(&files, Arc::new(mischief))
}

#[test]
fn interrupted_download_resumes() {
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
    let starts: Vec<usize> = imitation
        .storage
        .downloads()
        .iter()
        .map(Asked::from)
        .collect();
    assert_eq!(starts, [0, 100_000, 200_000]);

    // Another process resumes the download too.
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
    assert_eq!(imitation.storage.downloads()[0].from(), 120_000);
    assert_eq!(
        fs::read(found.folder.join("model.safetensors")).unwrap(),
        weights()
    );
    assert!(!torn.exists());
}

#[test]
fn download_restarts_without_resume_support() {
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
fn foreign_partial_file_is_checked_and_replaced() {
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
fn wrong_bytes_and_sizes_are_rejected() {
    type Lie = fn(&Asked, Vec<u8>) -> Option<Reply>;
    let lies: [(&str, Lie); 4] = [
        ("sha256", |asked, mut bytes| {
            bytes[123_456] ^= 1;
            Some(Reply::content(asked, &bytes))
        }),
        ("expected 300000 bytes, found 299999", |asked, bytes| {
            Some(Reply::content(asked, &bytes[1..]))
        }),
        ("expected 300000 bytes, found 300001", |asked, mut bytes| {
            bytes.push(0);
            Some(Reply::content(asked, &bytes))
        }),
        (
            "expected 300000 bytes, found at least 30",
            |asked, mut bytes| {
                bytes.extend([0; 9000]);
                let mut reply = Reply::content(asked, &bytes);
                reply.length = false;
                Some(reply)
            },
        ),
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
fn headers_that_contradict_content_are_rejected() {
    let files = [
        ("config.json", CONFIG),
        ("model.safetensors", &weights()[..]),
    ];
    for (name, value, expected) in [
        (
            "X-Linked-Size",
            "299999".to_owned(),
            "expected 299999 bytes, found 300000",
        ),
        (
            "X-Linked-Etag",
            format!("\"{}\"", "0".repeat(64)),
            "expected sha256 0000",
        ),
        ("X-Repo-Commit", "f".repeat(40), "the hub answers for ffff"),
    ] {
        let heads = AtomicUsize::new(0);
        let mischief = move |asked: &Asked| {
            let head = asked.method == "HEAD" && asked.path.ends_with("model.safetensors");
            let size = weights().len().to_string();
            (head && heads.fetch_add(1, Ordering::SeqCst) == 0).then(|| {
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
        assert!(error.to_string().contains(expected), "{error}");
        let repo = dir.path().join("models--owner--name");
        assert!(
            all(&repo.join("blobs")).len() <= 1,
            "{name}: only the configuration"
        );
        assert!(!repo.join("snapshots").exists() && !repo.join("refs").exists());
    }
}

#[test]
fn silent_server_times_out() {
    let silent = |asked: &Asked| {
        if asked.path.starts_with("/blob/") && asked.method == "GET" {
            std::thread::sleep(Duration::from_secs(2));
        }
        None
    };
    let files = [("config.json", CONFIG), ("a.safetensors", &weights()[..])];
    let imitation = Imitation::of(&files, Arc::new(silent));
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(imitation.hub.url(), dir.path());
    settings.retry.read_timeout = Duration::from_millis(100);
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("owner/name/a.safetensors"),
        "{error}"
    );
    assert_eq!(imitation.storage.downloads().len(), 3);
}

#[test]
fn connection_without_progress_is_abandoned() {
    let imitation = bad_content(|asked, bytes| {
        let mut reply = Reply::content(asked, &bytes);
        reply.cut = Some(0);
        Some(reply)
    });
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(&settings(imitation.hub.url(), dir.path()), "owner/name").unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, HubErrorKind::Unavailable, "{text}");
    assert!(
        text.contains("model.safetensors") && text.contains("hint: "),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(imitation.storage.downloads().len(), 3);
}

/// `ACEM3_TEST_SMALL_DISK` is a folder on a disk with less than 300,000 bytes.
#[test]
fn full_disk_is_reported_and_download_can_resume() {
    let Some(disk) = std::env::var_os("ACEM3_TEST_SMALL_DISK") else {
        println!("skipped: ACEM3_TEST_SMALL_DISK is not a folder on a small disk");
        return;
    };
    let imitation = bad_content(|_, _| None);
    let error = fetch(
        &settings(imitation.hub.url(), Path::new(&disk)),
        "owner/name",
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains(".incomplete: "), "{text}");
    assert!(text.contains("hint: free some space"), "{text}");
    let repo = Path::new(&disk).join("models--owner--name");
    assert!(!repo.join("snapshots").exists() && !repo.join("refs").exists());
    let torn = repo.join("blobs").join(sha256(&weights()) + ".incomplete");
    assert!(fs::metadata(torn).unwrap().len() < 300_000);
}

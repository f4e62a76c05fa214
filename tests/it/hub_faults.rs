//! Downloads with broken connections, invalid responses and full disks.

#![expect(clippy::print_stdout, reason = "prints measurements and the reason for skipped tests")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3::checkpoints::hub::HubErrorKind;

use crate::hub::{CONFIG, fetch, files_in, service_url, settings, weights};
use crate::mock_hub::{COMMIT, MockHub, MockReply, ReceivedRequest, sha256};

/// Starts a hub whose storage answers downloads with `reply`, or correctly if it returns `None`.
fn hub_with_storage(
    reply: impl Fn(&ReceivedRequest, Vec<u8>) -> Option<MockReply> + Send + Sync + 'static,
) -> MockHub {
    let files = [("config.json", CONFIG), ("model.safetensors", &weights()[..])];
    let override_reply = move |request: &ReceivedRequest| {
        let is_download = request.path.starts_with("/blob/") && request.method == "GET";
        is_download.then(|| reply(request, weights())).flatten()
    };
    MockHub::with_faults(&files, Arc::new(override_reply))
}

#[test]
fn interrupted_download_resumes() {
    // Every connection ends after 100,000 bytes.
    let mock = hub_with_storage(|request, bytes| {
        let mut reply = MockReply::from_content(request, &bytes);
        reply.truncate_at = Some(100_000);
        Some(reply)
    });
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&mock.hub.url(), dir.path());
    let snapshot = fetch(&settings, "owner/name").unwrap();
    assert_eq!(fs::read(snapshot.folder.join("model.safetensors")).unwrap(), weights());
    let starts: Vec<usize> =
        mock.storage.take_downloads().iter().map(ReceivedRequest::range_start).collect();
    assert_eq!(starts, [0, 100_000, 200_000]);

    // A new download resumes from the partial file too.
    let dir = tempfile::tempdir().unwrap();
    settings.cache = dir.path().to_owned();
    let calls = AtomicUsize::new(0);
    let mock = hub_with_storage(move |request, bytes| {
        let mut reply = MockReply::from_content(request, &bytes);
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => reply.truncate_at = Some(120_000),
            1..=3 => reply = MockReply::new(503, "busy"),
            _ => {}
        }
        Some(reply)
    });
    settings.endpoint = service_url(&mock.hub.url());
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
    assert!(!dir.path().join("models--owner--name/snapshots").exists());
    let partial =
        dir.path().join("models--owner--name/blobs").join(sha256(&weights()) + ".incomplete");
    assert_eq!(fs::metadata(&partial).unwrap().len(), 120_000);
    mock.storage.take_requests();
    let snapshot = fetch(&settings, "owner/name").unwrap();
    assert_eq!(mock.storage.take_downloads()[0].range_start(), 120_000);
    assert_eq!(fs::read(snapshot.folder.join("model.safetensors")).unwrap(), weights());
    assert!(!partial.exists());
}

#[test]
fn download_restarts_without_resume_support() {
    let calls = AtomicUsize::new(0);
    let mock = hub_with_storage(move |_, bytes| {
        let mut reply = MockReply::new(200, bytes);
        reply.truncate_at = (calls.fetch_add(1, Ordering::SeqCst) == 0).then_some(50_000);
        Some(reply)
    });
    let dir = tempfile::tempdir().unwrap();
    let snapshot = fetch(&settings(&mock.hub.url(), dir.path()), "owner/name").unwrap();
    assert_eq!(fs::read(snapshot.folder.join("model.safetensors")).unwrap(), weights());
}

#[test]
fn corrupt_partial_file_is_replaced() {
    let mock = hub_with_storage(|_, _| None);
    let dir = tempfile::tempdir().unwrap();
    let blobs = dir.path().join("models--owner--name/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let partial = blobs.join(sha256(&weights()) + ".incomplete");
    for content in [vec![7; 1000], vec![7; 300_000], vec![7; 300_001]] {
        let _ = fs::remove_file(blobs.join(sha256(&weights())));
        fs::write(&partial, content).unwrap();
        let snapshot = fetch(&settings(&mock.hub.url(), dir.path()), "owner/name").unwrap();
        assert_eq!(fs::read(snapshot.folder.join("model.safetensors")).unwrap(), weights());
        assert!(!partial.exists());
    }
}

#[test]
fn wrong_bytes_and_sizes_are_rejected() {
    type MakeReply = fn(&ReceivedRequest, Vec<u8>) -> Option<MockReply>;
    let cases: [(&str, MakeReply); 4] = [
        ("sha256", |request, mut bytes| {
            bytes[123_456] ^= 1;
            Some(MockReply::from_content(request, &bytes))
        }),
        ("expected 300000 bytes, found 299999", |request, bytes| {
            Some(MockReply::from_content(request, &bytes[1..]))
        }),
        ("expected 300000 bytes, found 300001", |request, mut bytes| {
            bytes.push(0);
            Some(MockReply::from_content(request, &bytes))
        }),
        ("expected 300000 bytes, found at least 30", |request, mut bytes| {
            bytes.extend([0; 9000]);
            let mut reply = MockReply::from_content(request, &bytes);
            reply.has_content_length = false;
            Some(reply)
        }),
    ];
    for (expected, make_reply) in cases {
        let mock = hub_with_storage(make_reply);
        let dir = tempfile::tempdir().unwrap();
        let error = fetch(&settings(&mock.hub.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(expected) && text.contains("model.safetensors") && text.contains("hint:"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        let blobs = files_in(&dir.path().join("models--owner--name/blobs"));
        assert_eq!(blobs.len(), 1, "{expected}: only the configuration: {blobs:?}");
        assert!(!dir.path().join("models--owner--name/snapshots").exists(), "{expected}");
        assert!(!dir.path().join("models--owner--name/refs").exists(), "{expected}");
    }
}

#[test]
fn headers_that_contradict_content_are_rejected() {
    let files = [("config.json", CONFIG), ("model.safetensors", &weights()[..])];
    for (name, value, expected) in [
        ("X-Linked-Size", "299999".to_owned(), "expected 299999 bytes, found 300000"),
        ("X-Linked-Etag", format!("\"{}\"", "0".repeat(64)), "expected sha256 0000"),
        ("X-Repo-Commit", "f".repeat(40), ", found ffff"),
    ] {
        let calls = AtomicUsize::new(0);
        let override_first_head = move |request: &ReceivedRequest| {
            let is_head = request.method == "HEAD" && request.path.ends_with("model.safetensors");
            let size = weights().len().to_string();
            (is_head && calls.fetch_add(1, Ordering::SeqCst) == 0).then(|| {
                MockReply::new(302, "")
                    .with_header("X-Repo-Commit", COMMIT)
                    .with_header("X-Linked-Etag", sha256(&weights()))
                    .with_header("X-Linked-Size", size)
                    .with_header("Location", "http://127.0.0.1:9/")
                    .with_header(name, value.clone())
            })
        };
        let mock = MockHub::with_faults(&files, Arc::new(override_first_head));
        let dir = tempfile::tempdir().unwrap();
        let error = fetch(&settings(&mock.hub.url(), dir.path()), "owner/name").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let repo = dir.path().join("models--owner--name");
        assert!(files_in(&repo.join("blobs")).len() <= 1, "{name}: only the configuration");
        assert!(!repo.join("snapshots").exists() && !repo.join("refs").exists());
    }
}

#[test]
fn silent_server_times_out() {
    let wait = |request: &ReceivedRequest| {
        if request.path.starts_with("/blob/") && request.method == "GET" {
            std::thread::sleep(Duration::from_secs(2));
        }
        None
    };
    let files = [("config.json", CONFIG), ("a.safetensors", &weights()[..])];
    let mock = MockHub::with_faults(&files, Arc::new(wait));
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(&mock.hub.url(), dir.path());
    settings.retry.read_timeout = Duration::from_millis(100);
    let error = fetch(&settings, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("owner/name/a.safetensors"), "{error}");
    assert_eq!(mock.storage.take_downloads().len(), 3);
}

/// A few bytes per connection are no progress.
#[test]
fn connection_without_progress_is_abandoned() {
    for received in [0, 1, 1000] {
        let mock = hub_with_storage(move |request, bytes| {
            let mut reply = MockReply::from_content(request, &bytes);
            reply.truncate_at = Some(received);
            Some(reply)
        });
        let dir = tempfile::tempdir().unwrap();
        let error = fetch(&settings(&mock.hub.url(), dir.path()), "owner/name").unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind, HubErrorKind::Unavailable, "{text}");
        assert!(text.contains("model.safetensors") && text.contains("hint: "), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(mock.storage.take_downloads().len(), 3);
    }
}

/// `ACEM3_TEST_SMALL_DISK` is a folder on a disk with less than 300,000 free bytes.
#[test]
fn full_disk_is_reported_and_download_can_resume() {
    let Some(disk) = std::env::var_os("ACEM3_TEST_SMALL_DISK") else {
        println!("skipped: ACEM3_TEST_SMALL_DISK is not a folder on a small disk");
        return;
    };
    let mock = hub_with_storage(|_, _| None);
    let error = fetch(&settings(&mock.hub.url(), Path::new(&disk)), "owner/name").unwrap_err();
    let text = error.to_string();
    assert!(text.contains(".incomplete: "), "{text}");
    assert!(text.contains("hint: free some space"), "{text}");
    let repo = Path::new(&disk).join("models--owner--name");
    assert!(!repo.join("snapshots").exists() && !repo.join("refs").exists());
    let partial = repo.join("blobs").join(sha256(&weights()) + ".incomplete");
    assert!(fs::metadata(partial).unwrap().len() < 300_000);
}

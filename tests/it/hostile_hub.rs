//! A hub that never ends, redirects without end, or asks for the token over plain http.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acem3::checkpoints::hub::{HubErrorKind, HubSettings};

use crate::folder::Folder;
use crate::hub::{CONFIG, fetch, settings, weights};
use crate::hub_command::run;
use crate::mock_hub::{MockHub, MockReply, MockServer, ReceivedRequest};

/// Every test ends long before this time, which is shorter than the timeouts of `settings`.
const SOON: Duration = Duration::from_secs(10);

/// Starts a server that reads the headers of each request and answers with `reply`.
pub(crate) fn start_server(
    reply: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reply = Arc::new(reply);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    line.clear();
                }
                // The client closes the connection when it has read enough.
                let _ = reply(&mut stream);
            });
        }
    });
    url
}

/// Writes the same bytes until the client closes the connection.
pub(crate) fn write_forever(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(bytes)?;
    }
}

fn settings_of(url: &str, folder: &tempfile::TempDir) -> HubSettings {
    settings(url, folder.path())
}

#[test]
fn endless_lists_errors_and_headers_end() {
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let list = start_server(|stream| {
        stream.write_all(b"HTTP/1.1 200 X\r\n\r\n{\"sha\": \"")?;
        write_forever(stream, &[b'a'; 1 << 13])
    });
    let error = fetch(&settings_of(&list, &folder), "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::BadResponse, "{error}");
    assert!(error.to_string().contains("longer than 16777216 bytes"), "{error}");
    let rejected = start_server(|stream| {
        stream.write_all(b"HTTP/1.1 401 X\r\n\r\n")?;
        write_forever(stream, &[b'a'; 1 << 13])
    });
    let error = fetch(&settings_of(&rejected, &folder), "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Rejected, "{error}");
    let headers = start_server(|stream| {
        stream.write_all(b"HTTP/1.1 200 X\r\n")?;
        write_forever(stream, b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
    });
    fetch(&settings_of(&headers, &folder), "owner/name").unwrap_err();
    assert!(start.elapsed() < SOON);
}

/// Writes a blank every 20 milliseconds until the client closes the connection.
fn write_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        stream.write_all(b" ")?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a hub that redirects requests for the bytes of the weights to `storage`.
fn hub_with_storage(storage: String) -> MockHub {
    let redirect = move |request: &ReceivedRequest| {
        let is_weights = request.method == "GET" && request.path.ends_with("model.safetensors");
        is_weights.then(|| MockReply::new(302, "").with_header("Location", &storage))
    };
    let files = [("config.json", CONFIG), ("model.safetensors", &weights()[..])];
    MockHub::with_faults(&files, Arc::new(redirect))
}

#[test]
fn single_bytes_do_not_keep_a_connection_open() {
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let list = start_server(|stream| {
        stream.write_all(b"HTTP/1.1 200 X\r\n\r\n")?;
        write_slowly(stream)
    });
    let mut slow = settings_of(&list, &folder);
    slow.retry.metadata_timeout = Duration::from_millis(200);
    let error = fetch(&slow, "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::Unavailable, "{error}");

    let mock = hub_with_storage(start_server(|stream| {
        write!(stream, "HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n", weights().len())?;
        write_slowly(stream)
    }));
    let mut slow = settings_of(&mock.hub.url(), &folder);
    slow.retry.slow_timeout = Duration::from_millis(300);
    let error = fetch(&slow, "owner/name").unwrap_err().to_string();
    assert!(error.contains("fewer than 32768 bytes in"), "{error}");

    let mock = hub_with_storage(start_server(|stream| {
        stream.write_all(b"HTTP/1.1 404 X\r\n\r\n")?;
        write_slowly(stream)
    }));
    let mut slow = settings_of(&mock.hub.url(), &folder);
    slow.retry.metadata_timeout = Duration::from_millis(300);
    let error = fetch(&slow, "owner/name").unwrap_err().to_string();
    assert!(error.contains("no complete response in"), "{error}");
    assert!(start.elapsed() < SOON);
}

#[cfg(target_os = "linux")]
#[test]
fn endless_error_response_to_a_download_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mock = hub_with_storage(start_server(|stream| {
        stream.write_all(b"HTTP/1.1 404 X\r\n\r\n")?;
        write_forever(stream, &[b'a'; 1 << 13])
    }));
    let error = fetch(&settings_of(&mock.hub.url(), &folder), "owner/name").unwrap_err();
    assert_eq!(error.kind, HubErrorKind::BadResponse, "{error}");
    assert!(error.to_string().contains("longer than 268435456 bytes"), "{error}");
}

#[test]
fn redirects_end_and_stay_off_plain_http() {
    let folder = tempfile::tempdir().unwrap();
    let with_location = |location: &'static str| {
        let reply =
            move |_: &ReceivedRequest| MockReply::new(307, "").with_header("Location", location);
        MockServer::start(Arc::new(reply))
    };
    let endless = with_location("/again");
    let error = fetch(&settings_of(&endless.url(), &folder), "owner/name").unwrap_err();
    assert!(error.to_string().contains("too many redirects"), "{error}");
    assert!(endless.take_requests().len() < 20);
    // The address is reserved for documentation: a request would wait for a timeout.
    let elsewhere = with_location("http://192.0.2.1/hub");
    let start = Instant::now();
    let error = fetch(&settings_of(&elsewhere.url(), &folder), "owner/name").unwrap_err();
    assert!(error.to_string().contains("another host over plain http"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn names_from_the_hub_cannot_control_the_terminal() {
    let files = [("config.json", CONFIG), ("a\u{1b}]0;x\u{7}.bin", b"x")];
    let mock = MockHub::without_faults(&files);
    let folder = Folder::with_cases(1);
    let args = ["judge", "cases", "--out", "out", "--panel", "owner/name"];
    let output = run(&folder, &mock.hub.url(), &args);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("a file outside of the repository"), "{}", output.stderr);
    assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
}

#[test]
fn endpoint_variable_has_no_credentials_and_needs_https() {
    let folder = Folder::with_cases(1);
    let judge = |endpoint: &str, more: &[&str]| {
        let args = ["judge", "cases", "--out", "out", "--panel", "owner/name"];
        let output = run(&folder, endpoint, &[&args[..], more].concat());
        assert_eq!(output.exit_code, 2, "{endpoint}: {}", output.stderr);
        output.stderr
    };
    for endpoint in ["https://hf_k3y@hub", "https://u:hf_k3y@hub", "https://hub?token=hf_k3y"] {
        let stderr = judge(endpoint, &[]);
        assert!(stderr.contains("HF_ENDPOINT: the URL contains"), "{stderr}");
        assert!(stderr.contains("set HF_TOKEN") && !stderr.contains("hf_k3y"), "{stderr}");
    }
    let stderr = judge("http://192.0.2.1", &[]);
    assert!(stderr.contains("plain http to another host"), "{stderr}");
    assert!(stderr.contains("--allow-http"), "{stderr}");
    let stderr = judge("http://192.0.2.1", &["--allow-http", "--offline"]);
    assert!(stderr.contains("not in the cache"), "{stderr}");
    // A URL with a key where a panel is expected is not printed either.
    let args = ["judge", "cases", "--out", "out", "--panel", "https://u:hf_k3y@hub/owner/name"];
    let output = run(&folder, "", &args);
    assert_eq!(output.exit_code, 2);
    assert!(!output.stderr.contains("hf_k3y"), "{}", output.stderr);
}

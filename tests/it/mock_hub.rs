//! A local mock of the model hub: the endpoints that downloads use, with injected faults.
//!
//! Its replies follow the public hub (reference: `huggingface_hub`, `hf_api.py` and
//! `file_download.py`). The hub serves small files itself, with their git hash as `ETag`.
//! It redirects large files to a storage server, with their SHA-256 as `X-Linked-Etag`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: BTreeMap<String, String>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the first byte of the requested range.
    pub(crate) fn range_start(&self) -> usize {
        let range = self.header("range").and_then(|r| r.strip_prefix("bytes="));
        range.map_or(0, |r| r.split_once('-').unwrap().0.parse().unwrap())
    }
}

/// An HTTP response, possibly malformed.
#[derive(Clone, Debug)]
pub(crate) struct MockReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Number of body bytes after which the server closes the connection.
    pub(crate) truncate_at: Option<usize>,
    /// True if the response has a `Content-Length` header.
    pub(crate) has_content_length: bool,
}

impl MockReply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            truncate_at: None,
            has_content_length: true,
        }
    }

    /// Sets a header.
    pub(crate) fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Creates an error response of the hub.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        Self::new(status, "{}").with_header("X-Error-Code", code)
    }

    /// Creates a response with the requested range of a file.
    pub(crate) fn from_content(request: &ReceivedRequest, bytes: &[u8]) -> Self {
        let (start, size) = (request.range_start(), bytes.len());
        match start {
            0 => Self::new(200, bytes),
            _ if start >= size => {
                Self::new(416, "").with_header("Content-Range", format!("bytes */{size}"))
            }
            _ => Self::new(206, &bytes[start..])
                .with_header("Content-Range", format!("bytes {start}-{}/{size}", size - 1)),
        }
    }
}

type ReplyFn = dyn Fn(&ReceivedRequest) -> MockReply + Send + Sync;

/// A server that records its requests.
pub(crate) struct MockServer {
    port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl MockServer {
    /// Starts a server on a free port.
    pub(crate) fn start(reply_fn: Arc<ReplyFn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let recorded = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (reply_fn, recorded) = (Arc::clone(&reply_fn), Arc::clone(&recorded));
                std::thread::spawn(move || serve(stream, reply_fn.as_ref(), &recorded));
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the GET requests since the last call.
    pub(crate) fn take_downloads(&self) -> Vec<ReceivedRequest> {
        let requests = self.take_requests().into_iter();
        requests.filter(|request| request.method == "GET").collect()
    }

    /// Returns all requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

/// Reads a request, records it and writes the reply.
fn serve(
    mut stream: TcpStream,
    reply_fn: &ReplyFn,
    recorded: &Mutex<Vec<ReceivedRequest>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split_whitespace();
    let (method, path) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let body_length: usize = headers.get("content-length").map_or(0, |n| n.parse().unwrap());
    reader.take(body_length as u64).read_to_end(&mut Vec::new()).ok()?;
    let request = ReceivedRequest { method, path, headers };
    recorded.lock().unwrap().push(request.clone());
    let reply = reply_fn(&request);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    let has_length_header = reply.headers.iter().any(|(name, _)| name == "Content-Length");
    if reply.has_content_length && !has_length_header {
        head.push_str("Content-Length: ");
        head.push_str(&reply.body.len().to_string());
        head.push_str("\r\n");
    }
    for (name, value) in &reply.headers {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    stream.write_all((head + "\r\n").as_bytes()).ok()?;
    if request.method != "HEAD" {
        let end = reply.truncate_at.unwrap_or(usize::MAX).min(reply.body.len());
        stream.write_all(&reply.body[..end]).ok()?;
    }
    stream.flush().ok()
}

/// Commit of the mock repository.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Files with more bytes are served by the storage server.
const LARGE_FILE_BYTES: usize = 1000;

/// Returns a faulty reply to a request, or `None` for the correct reply.
pub(crate) type FaultFn = dyn Fn(&ReceivedRequest) -> Option<MockReply> + Send + Sync;

/// The mock hub and its storage server.
pub(crate) struct MockHub {
    pub(crate) hub: MockServer,
    pub(crate) storage: MockServer,
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

pub(crate) fn git_hash(bytes: &[u8]) -> String {
    let blob = Sha1::new().chain_update(format!("blob {}\0", bytes.len()));
    format!("{:x}", blob.chain_update(bytes).finalize())
}

/// Returns the `ETag` of a file: the git hash of a small file, the SHA-256 of a large one.
pub(crate) fn content_hash(bytes: &[u8]) -> String {
    if bytes.len() > LARGE_FILE_BYTES { sha256(bytes) } else { git_hash(bytes) }
}

impl MockHub {
    /// Starts a hub with the repository `owner/name`, which has `files` on the branches `main` and
    /// `refs/pr/1`. `faults` replaces replies of the hub and of the storage server.
    pub(crate) fn with_faults(files: &[(&str, &[u8])], faults: Arc<FaultFn>) -> Self {
        let files: Vec<(String, Vec<u8>)> =
            files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let (files, stored_files) = (Arc::new(files.clone()), files);
        let storage_faults = Arc::clone(&faults);
        let storage = MockServer::start(Arc::new(move |request: &ReceivedRequest| {
            storage_faults(request).unwrap_or_else(|| {
                let found =
                    stored_files.iter().find(|(_, bytes)| request.path.contains(&sha256(bytes)));
                found.map_or(MockReply::new(404, ""), |(_, bytes)| {
                    MockReply::from_content(request, bytes)
                })
            })
        }));
        let storage_url = storage.url();
        let hub = MockServer::start(Arc::new(move |request: &ReceivedRequest| {
            faults(request).unwrap_or_else(|| hub_reply(request, &files, &storage_url))
        }));
        Self { hub, storage }
    }

    /// Starts a hub without faults.
    pub(crate) fn without_faults(files: &[(&str, &[u8])]) -> Self {
        Self::with_faults(files, Arc::new(|_| None))
    }
}

/// Returns the correct reply of the hub to a request.
fn hub_reply(
    request: &ReceivedRequest,
    files: &[(String, Vec<u8>)],
    storage_url: &str,
) -> MockReply {
    let path = request.path.split('?').next().unwrap_or_default();
    let revisions = ["main", "refs%2Fpr%2F1", COMMIT];
    if let Some(rest) = path.strip_prefix("/api/models/owner/name") {
        if rest.is_empty() {
            return model_info_reply(files);
        }
        let rest = rest.trim_start_matches('/');
        return match rest.split_once('/') {
            Some(("revision", revision)) if revisions.contains(&revision) => {
                model_info_reply(files)
            }
            Some(("tree", revision)) if revisions.contains(&revision) => tree_reply(files),
            Some(("revision" | "tree", _)) => MockReply::error(404, "RevisionNotFound"),
            _ => MockReply::new(404, "{}"),
        };
    }
    let Some(rest) = path.strip_prefix("/owner/name/resolve/") else {
        return MockReply::error(
            if request.header("authorization").is_some() { 404 } else { 401 },
            "RepoNotFound",
        );
    };
    let file = rest.split_once('/').map_or("", |(_, file)| file);
    let Some((_, bytes)) = files.iter().find(|(name, _)| name == file) else {
        return MockReply::error(404, "EntryNotFound");
    };
    if bytes.len() > LARGE_FILE_BYTES {
        let sha = sha256(bytes);
        MockReply::new(302, "")
            .with_header("X-Repo-Commit", COMMIT)
            .with_header("X-Linked-Etag", format!("\"{sha}\""))
            .with_header("X-Linked-Size", bytes.len().to_string())
            .with_header("ETag", "\"of the storage\"")
            .with_header("Location", format!("{storage_url}/blob/{sha}?signature=secret"))
    } else {
        MockReply::from_content(request, bytes)
            .with_header("X-Repo-Commit", COMMIT)
            .with_header("ETag", format!("\"{}\"", git_hash(bytes)))
    }
}

/// Returns the LFS metadata of a large file, with its hash under `hash_key`.
fn lfs_entry(bytes: &[u8], hash_key: &str) -> Value {
    if bytes.len() > LARGE_FILE_BYTES {
        json!({hash_key: sha256(bytes), "size": bytes.len(), "pointerSize": 134})
    } else {
        Value::Null
    }
}

/// Returns the metadata of the repository.
pub(crate) fn model_info_reply(files: &[(String, Vec<u8>)]) -> MockReply {
    let siblings = files.iter().map(|(name, bytes)| {
        let mut file = json!({"rfilename": name, "size": bytes.len(), "blobId": git_hash(bytes)});
        if bytes.len() > LARGE_FILE_BYTES {
            file["lfs"] = lfs_entry(bytes, "sha256");
        }
        file
    });
    let siblings: Vec<Value> = siblings.collect();
    let info = json!({"_id": "1", "id": "owner/name", "modelId": "owner/name", "private": false,
        "tags": [], "downloads": 0, "likes": 0, "sha": COMMIT, "siblings": siblings});
    MockReply::new(200, info.to_string()).with_header("Content-Type", "application/json")
}

/// Returns the file tree of the repository.
fn tree_reply(files: &[(String, Vec<u8>)]) -> MockReply {
    let entries = files.iter().map(|(name, bytes)| {
        let mut file =
            json!({"type": "file", "path": name, "size": bytes.len(), "oid": git_hash(bytes)});
        if bytes.len() > LARGE_FILE_BYTES {
            file["lfs"] = lfs_entry(bytes, "oid");
        }
        file
    });
    let entries: Vec<Value> = entries.collect();
    MockReply::new(200, Value::from(entries).to_string())
        .with_header("Content-Type", "application/json")
}

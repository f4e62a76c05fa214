//! A hub on this machine: the endpoints that downloads use, and every way to fail at them.
//!
//! What it says is what the public hub says (reference: `huggingface_hub`, `hf_api.py` and
//! `file_download.py`): small files from the hub itself, named by their git hash; large ones by a
//! redirect to a storage server, named by their SHA-256.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: BTreeMap<String, String>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte that is asked for.
    pub(crate) fn from(&self) -> usize {
        let range = self.header("range").and_then(|r| r.strip_prefix("bytes="));
        range.map_or(0, |r| r.split_once('-').unwrap().0.parse().unwrap())
    }
}

/// An answer, perhaps a bad one.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Close the connection after so many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Say how long the body is.
    pub(crate) length: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            cut: None,
            length: true,
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn refused(status: u16, code: &str) -> Self {
        Self::new(status, "{}").with("X-Error-Code", code)
    }

    /// A content, from the byte on that was asked for.
    pub(crate) fn content(asked: &Asked, bytes: &[u8]) -> Self {
        let (from, size) = (asked.from(), bytes.len());
        match from {
            0 => Self::new(200, bytes),
            _ if from >= size => {
                Self::new(416, "").with("Content-Range", format!("bytes */{size}"))
            }
            _ => Self::new(206, &bytes[from..])
                .with("Content-Range", format!("bytes {from}-{}/{size}", size - 1)),
        }
    }
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server that keeps what it was asked.
pub(crate) struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn start(answer: Arc<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                std::thread::spawn(move || serve(stream, answer.as_ref(), &kept));
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The downloads since the last call.
    pub(crate) fn downloads(&self) -> Vec<Asked> {
        let asked = self.asked().into_iter();
        asked.filter(|asked| asked.method == "GET").collect()
    }

    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn serve(mut stream: TcpStream, answer: &Answer, kept: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let body: usize = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    reader.take(body as u64).read_to_end(&mut Vec::new()).ok()?;
    let asked = Asked {
        method,
        path,
        headers,
    };
    kept.lock().unwrap().push(asked.clone());
    let reply = answer(&asked);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    let stated = reply
        .headers
        .iter()
        .any(|(name, _)| name == "Content-Length");
    if reply.length && !stated {
        head.push_str("Content-Length: ");
        head.push_str(&reply.body.len().to_string());
        head.push_str("\r\n");
    }
    for (name, value) in &reply.headers {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    stream.write_all((head + "\r\n").as_bytes()).ok()?;
    if asked.method != "HEAD" {
        let end = reply.cut.unwrap_or(usize::MAX).min(reply.body.len());
        stream.write_all(&reply.body[..end]).ok()?;
    }
    stream.flush().ok()
}

/// The commit of the imitated repository.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Files with more bytes are large.
const LARGE: usize = 1000;

/// What the imitation does instead of what it should; `None` where it does what it should.
pub(crate) type Mischief = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;

/// The imitated hub and its storage.
pub(crate) struct Imitation {
    pub(crate) hub: Server,
    pub(crate) storage: Server,
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

pub(crate) fn git(bytes: &[u8]) -> String {
    let blob = Sha1::new().chain_update(format!("blob {}\0", bytes.len()));
    format!("{:x}", blob.chain_update(bytes).finalize())
}

/// The name of a content.
pub(crate) fn hash(bytes: &[u8]) -> String {
    if bytes.len() > LARGE {
        sha256(bytes)
    } else {
        git(bytes)
    }
}

impl Imitation {
    /// A hub that holds `owner/name` with these files, on the branches `main` and `refs/pr/1`.
    pub(crate) fn of(files: &[(&str, &[u8])], mischief: Arc<Mischief>) -> Self {
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
            .collect();
        let (files, kept) = (Arc::new(files.clone()), files);
        let bad = Arc::clone(&mischief);
        let storage = Server::start(Arc::new(move |asked: &Asked| {
            bad(asked).unwrap_or_else(|| {
                let found = kept
                    .iter()
                    .find(|(_, bytes)| asked.path.contains(&sha256(bytes)));
                found.map_or(Reply::new(404, ""), |(_, bytes)| {
                    Reply::content(asked, bytes)
                })
            })
        }));
        let address = storage.url();
        let hub = Server::start(Arc::new(move |asked: &Asked| {
            mischief(asked).unwrap_or_else(|| answer(asked, &files, &address))
        }));
        Self { hub, storage }
    }

    /// A hub that does what it should.
    pub(crate) fn good(files: &[(&str, &[u8])]) -> Self {
        Self::of(files, Arc::new(|_| None))
    }
}

fn answer(asked: &Asked, files: &[(String, Vec<u8>)], storage: &str) -> Reply {
    let path = asked.path.split('?').next().unwrap_or_default();
    let revisions = ["main", "refs%2Fpr%2F1", COMMIT];
    if let Some(rest) = path.strip_prefix("/api/models/owner/name") {
        if rest.is_empty() {
            return listing(files);
        }
        let rest = rest.trim_start_matches('/');
        return match rest.split_once('/') {
            Some(("revision", revision)) if revisions.contains(&revision) => listing(files),
            Some(("tree", revision)) if revisions.contains(&revision) => tree(files),
            Some(("revision" | "tree", _)) => Reply::refused(404, "RevisionNotFound"),
            _ => Reply::new(404, "{}"),
        };
    }
    let Some(rest) = path.strip_prefix("/owner/name/resolve/") else {
        return Reply::refused(
            if asked.header("authorization").is_some() {
                404
            } else {
                401
            },
            "RepoNotFound",
        );
    };
    let file = rest.split_once('/').map_or("", |(_, file)| file);
    let Some((_, bytes)) = files.iter().find(|(name, _)| name == file) else {
        return Reply::refused(404, "EntryNotFound");
    };
    if bytes.len() > LARGE {
        let sha = sha256(bytes);
        Reply::new(302, "")
            .with("X-Repo-Commit", COMMIT)
            .with("X-Linked-Etag", format!("\"{sha}\""))
            .with("X-Linked-Size", bytes.len().to_string())
            .with("ETag", "\"of the storage\"")
            .with("Location", format!("{storage}/blob/{sha}?signature=secret"))
    } else {
        Reply::content(asked, bytes)
            .with("X-Repo-Commit", COMMIT)
            .with("ETag", format!("\"{}\"", git(bytes)))
    }
}

fn large(bytes: &[u8], name: &str) -> Value {
    if bytes.len() > LARGE {
        json!({name: sha256(bytes), "size": bytes.len(), "pointerSize": 134})
    } else {
        Value::Null
    }
}

pub(crate) fn listing(files: &[(String, Vec<u8>)]) -> Reply {
    let siblings = files.iter().map(|(name, bytes)| {
        let mut file = json!({"rfilename": name, "size": bytes.len(), "blobId": git(bytes)});
        if bytes.len() > LARGE {
            file["lfs"] = large(bytes, "sha256");
        }
        file
    });
    let siblings: Vec<Value> = siblings.collect();
    let answer = json!({"_id": "1", "id": "owner/name", "modelId": "owner/name", "private": false,
        "tags": [], "downloads": 0, "likes": 0, "sha": COMMIT, "siblings": siblings});
    Reply::new(200, answer.to_string()).with("Content-Type", "application/json")
}

fn tree(files: &[(String, Vec<u8>)]) -> Reply {
    let entries = files.iter().map(|(name, bytes)| {
        let mut file =
            json!({"type": "file", "path": name, "size": bytes.len(), "oid": git(bytes)});
        if bytes.len() > LARGE {
            file["lfs"] = large(bytes, "oid");
        }
        file
    });
    let entries: Vec<Value> = entries.collect();
    Reply::new(200, Value::from(entries).to_string()).with("Content-Type", "application/json")
}

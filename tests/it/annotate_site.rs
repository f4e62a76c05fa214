//! Test helper: a running site for human raters, and requests to it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The study of most tests.
pub(crate) const STUDY: &str =
    "name = \"Demo study\"\nseed = 5\nraters = [\"dr-lee\", \"dr-ito\"]\n";

/// Returns the folder of the demo cases.
pub(crate) fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo")
}

/// Returns the command that serves the demo cases, with the study and the ratings in a folder.
pub(crate) fn command(folder: &Path) -> Command {
    let study = folder.join("study.toml");
    if !study.exists() {
        fs::write(&study, STUDY).unwrap();
    }
    annotate_command(&demo(), folder)
}

/// Returns the command that serves cases, with the study and the ratings in a folder.
pub(crate) fn annotate_command(cases: &Path, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acem3"));
    command.arg("annotate").arg(cases);
    command.arg("--study").arg(folder.join("study.toml")).arg("--out").arg(folder.join("out"));
    command
}

/// A running site.
pub(crate) struct Site {
    child: Child,
    /// Host and port.
    pub(crate) host: String,
    /// Tokens by name.
    pub(crate) tokens: BTreeMap<String, String>,
    /// Name of the cookie, once it is known.
    cookie_name: OnceLock<String>,
}

/// An answer of the site.
pub(crate) struct Answer {
    /// HTTP status; 0 if the connection ended before.
    pub(crate) status: u16,
    /// First line and headers.
    pub(crate) headers: String,
    /// Body.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Site {
    /// Serves the demo cases on a free port.
    pub(crate) fn start(folder: &Path) -> Self {
        let mut command = command(folder);
        command.args(["--listen", "127.0.0.1:0"]);
        Self::start_command(&mut command)
    }

    /// Starts a site, and reads the links that it prints.
    pub(crate) fn start_command(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut tokens = BTreeMap::new();
        let mut host = String::new();
        for line in BufReader::new(child.stdout.as_mut().unwrap()).lines() {
            let line = line.unwrap();
            if let Some((name, link)) = line.split_once("  http") {
                let (_, link) = link.split_once("://").unwrap();
                let (address, token) = link.split_once("/enter/").unwrap();
                host = address.trim().to_owned();
                tokens.insert(name.trim().to_owned(), token.to_owned());
            }
            if line.starts_with("Send") {
                break;
            }
        }
        Self { child, host, tokens, cookie_name: OnceLock::new() }
    }

    /// Returns the link of a visitor.
    pub(crate) fn link(&self, name: &str) -> String {
        format!("http://{}/enter/{}", self.host, self.tokens[name])
    }

    /// Ends the program at once, as a power failure would. Returns what it printed on stderr, if that is
    /// a pipe.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut text).unwrap();
        }
        text
    }

    /// Sends a request with these header lines, as they are.
    pub(crate) fn send(&self, request: &str, headers: &[String], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let start = format!("{request} HTTP/1.1\r\nConnection: close\r\n");
        let lines = headers.iter().map(|header| format!("{header}\r\n"));
        let text = start + &lines.collect::<String>() + "\r\n";
        stream.write_all(text.as_bytes()).unwrap();
        // The site may answer and close before it has read a body that is too large.
        let _ = stream.write_all(body.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let headers = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
        Answer { status: status.unwrap_or_default(), headers, body }
    }

    /// Requests a page as a visitor.
    pub(crate) fn get(&self, name: &str, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &self.headers(name), "")
    }

    /// Sends a form as a visitor.
    pub(crate) fn post(&self, name: &str, path: &str, fields: &str) -> Answer {
        let mut headers = self.headers(name);
        headers.push(format!("Origin: http://{}", self.host));
        headers.push("Content-Type: application/x-www-form-urlencoded".to_owned());
        headers.push(format!("Content-Length: {}", fields.len()));
        self.send(&format!("POST {path}"), &headers, fields)
    }

    fn headers(&self, name: &str) -> Vec<String> {
        vec![format!("Host: {}", self.host), self.cookie(&self.tokens[name])]
    }

    /// Returns the header with the cookie of a token.
    pub(crate) fn cookie(&self, token: &str) -> String {
        let name = self.cookie_name.get_or_init(|| {
            let host = format!("Host: {}", self.host);
            let path = format!("GET /enter/{}", self.tokens["administrator"]);
            let entered = self.send(&path, &[host], "");
            let cookie = entered.header("set-cookie").unwrap();
            cookie.split('=').next().unwrap().to_owned()
        });
        format!("Cookie: {name}={token}")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

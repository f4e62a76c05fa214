//! Requests to the hub: redirects, the token, patience.

use std::io;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderMap, Method, Request, Response, Uri};
use ureq::{Agent, Body};

use super::agent::agent;
use super::checksum::Checksum;
use super::refusal::{Subject, header, is_passing, refusal};
use super::{HubError, Patience, RepoRef, Settings, Token, redirect};

/// Redirects in a row that are followed.
const REDIRECTS: usize = 8;
/// The longest answer about a repository: 64 MiB hold a few hundred thousand names.
const LISTING: u64 = 64 << 20;

/// Speaks with a hub.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    endpoint: Uri,
    root: String,
    token: Option<Token>,
    patience: Patience,
}

/// A failure, and whether another try makes sense.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Try again; `progress` says that this try brought something.
    Passing { error: HubError, progress: bool },
    /// Do not.
    Lasting(HubError),
}

/// What the hub states about a file.
#[derive(Debug)]
pub(super) struct Stated {
    /// Its hash; `None` where the server states none that is known.
    pub(super) hash: Option<Checksum>,
    /// Its size in bytes.
    pub(super) size: Option<u64>,
    /// The commit it is of.
    pub(super) commit: Option<String>,
}

/// An answer, and the headers of the redirects on the way to it.
struct Reply {
    answer: Response<Body>,
    passed: Vec<HeaderMap>,
}

impl Trouble {
    fn passing(error: HubError) -> Self {
        Self::Passing {
            error,
            progress: false,
        }
    }
}

impl Client {
    /// A client of the hub that the settings name.
    pub(super) fn new(settings: &Settings) -> Result<Self, HubError> {
        let endpoint: Result<Uri, _> = settings.endpoint.parse();
        let endpoint = endpoint.map_err(|error| HubError::Setting {
            name: "HF_ENDPOINT".to_owned(),
            why: format!("it is no address: {error}"),
            hint: "unset it for the public hub, or set it to your mirror",
        })?;
        let patience = settings.patience;
        Ok(Self {
            agent: agent(&endpoint, patience.connect, patience.silence),
            endpoint,
            root: settings.endpoint.clone(),
            token: settings.token.clone(),
            patience,
        })
    }

    /// What the hub tells about a revision: its commit and its files.
    pub(super) fn revision(&self, repo: &RepoRef) -> Result<Value, HubError> {
        let revision = redirect::quoted(repo.revision(), false);
        let url = format!(
            "{}/api/models/{}/revision/{revision}?blobs=true",
            self.root,
            repo.id()
        );
        let subject = Subject { repo, file: None };
        self.patiently(|| {
            let answer = self.send(&Method::GET, &url, None, &subject)?.answer;
            self.check(&answer, &subject)?;
            let body = answer.into_body().into_with_config().limit(LISTING);
            let bytes = body.read_to_vec().map_err(|error| self.broken(&error))?;
            serde_json::from_slice(&bytes).map_err(|_| {
                Trouble::Lasting(HubError::BadAnswer {
                    what: subject.name(),
                    why: format!("the answer of {} is not JSON", self.host()),
                })
            })
        })
    }

    /// What the hub states about a file, without its content.
    pub(super) fn stated(
        &self,
        repo: &RepoRef,
        commit: &str,
        file: &str,
    ) -> Result<Stated, HubError> {
        let url = self.file_url(repo, commit, file);
        let subject = Subject {
            repo,
            file: Some(file),
        };
        self.patiently(|| {
            let reply = self.send(&Method::HEAD, &url, None, &subject)?;
            if !reply.answer.status().is_redirection() {
                self.check(&reply.answer, &subject)?;
            }
            // The first that states a thing knows it best: storage servers have tags of their own.
            let last = reply.answer.headers();
            let all = || reply.passed.iter().chain([last]);
            let first = |name: &str| all().find_map(|headers| header(headers, name));
            let plain = |name: &str| header(last, name);
            let moved = reply.answer.status().is_redirection();
            let length = plain("content-length").filter(|_| !moved);
            Ok(Stated {
                hash: first("x-linked-etag")
                    .or_else(|| plain("etag"))
                    .and_then(Checksum::parse),
                size: first("x-linked-size")
                    .or(length)
                    .and_then(|n| n.parse().ok()),
                commit: first("x-repo-commit").map(str::to_owned),
            })
        })
    }

    /// The content of a file from a byte on: one try.
    pub(super) fn content(
        &self,
        subject: &Subject,
        commit: &str,
        from: u64,
    ) -> Result<Response<Body>, Trouble> {
        let url = self.file_url(subject.repo, commit, subject.file.unwrap_or_default());
        let answer = self.send(&Method::GET, &url, Some(from), subject)?.answer;
        if answer.status().as_u16() != 416 {
            self.check(&answer, subject)?;
        }
        Ok(answer)
    }

    /// Tries until it succeeds, fails for good, or has failed too often in a row.
    pub(super) fn patiently<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Trouble>,
    ) -> Result<T, HubError> {
        let fresh = (self.patience.tries.max(1), self.patience.pause);
        let (mut left, mut pause) = fresh;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(Trouble::Lasting(error)) => return Err(error),
                Err(Trouble::Passing { error, progress }) => {
                    if progress {
                        (left, pause) = fresh;
                    }
                    left -= 1;
                    if left == 0 {
                        return Err(error);
                    }
                    std::thread::sleep(pause);
                    pause = pause.saturating_mul(2).min(Duration::from_secs(30));
                }
            }
        }
    }

    /// A broken answer, as trouble that passes.
    pub(super) fn broken(&self, error: &dyn std::error::Error) -> Trouble {
        Trouble::passing(HubError::Unreachable {
            host: self.host(),
            why: error.to_string(),
        })
    }

    /// The host of the endpoint, for messages.
    pub(super) fn host(&self) -> String {
        redirect::host(&self.endpoint)
    }

    fn file_url(&self, repo: &RepoRef, commit: &str, file: &str) -> String {
        let file = redirect::quoted(file, true);
        format!("{}/{}/resolve/{commit}/{file}", self.root, repo.id())
    }

    fn check(&self, answer: &Response<Body>, subject: &Subject) -> Result<(), Trouble> {
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let from = (self.host(), self.token.is_some());
        let error = refusal(subject, status.as_u16(), answer.headers(), from);
        Err(if is_passing(status.as_u16()) {
            Trouble::passing(error)
        } else {
            Trouble::Lasting(error)
        })
    }

    /// Sends a request and follows where it is led; of a HEAD only within the hub, since it asks
    /// what the hub states. The token goes to the hub alone.
    fn send(
        &self,
        method: &Method,
        url: &str,
        from: Option<u64>,
        subject: &Subject,
    ) -> Result<Reply, Trouble> {
        let stray = |why: String| {
            Trouble::Lasting(HubError::BadAnswer {
                what: subject.name(),
                why,
            })
        };
        let mut uri: Uri = url
            .parse()
            .map_err(|_| stray("its address is none".to_owned()))?;
        let mut passed = Vec::new();
        for _ in 0..=REDIRECTS {
            let answer = self.once(method, &uri, from)?;
            if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(Reply { answer, passed });
            }
            let location = header(answer.headers(), "location").unwrap_or_default();
            let next = redirect::resolve(&uri, location).ok_or_else(|| {
                stray(format!(
                    "{} redirects to no safe address",
                    redirect::host(&uri)
                ))
            })?;
            if *method == Method::HEAD && !redirect::same_server(&next, &self.endpoint) {
                return Ok(Reply { answer, passed });
            }
            passed.push(answer.headers().clone());
            uri = next;
        }
        Err(stray(format!(
            "{} redirects in a circle",
            redirect::host(&uri)
        )))
    }

    fn once(
        &self,
        method: &Method,
        uri: &Uri,
        from: Option<u64>,
    ) -> Result<Response<Body>, Trouble> {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(uri.clone())
            .header("accept-encoding", "identity");
        if let Some(from) = from.filter(|from| *from > 0) {
            request = request.header("range", format!("bytes={from}-"));
        }
        if let Some(token) = &self.token
            && redirect::same_server(uri, &self.endpoint)
        {
            request = request.header("authorization", token.bearer());
        }
        let unreachable = |why: String| HubError::Unreachable {
            host: redirect::host(uri),
            why,
        };
        let request = request
            .body(())
            .map_err(|_| Trouble::Lasting(unreachable("the request cannot be made".to_owned())))?;
        self.agent.run(request).map_err(|error| match error {
            ureq::Error::HostNotFound => {
                Trouble::Lasting(unreachable("there is no host of this name".to_owned()))
            }
            ureq::Error::Io(error) if is_lasting(&error) => {
                Trouble::Lasting(unreachable(error.to_string()))
            }
            ureq::Error::Io(error) => Trouble::passing(unreachable(error.to_string())),
            ureq::Error::Timeout(_) => {
                Trouble::passing(unreachable("it does not answer in time".to_owned()))
            }
            error => Trouble::passing(unreachable(error.to_string())),
        })
    }
}

/// Whether a connection would fail again at once.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(
        error.kind(),
        HostUnreachable | NetworkUnreachable | PermissionDenied
    )
}

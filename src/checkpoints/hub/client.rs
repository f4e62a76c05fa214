//! Requests for one repository, with timeouts, limits, retries and errors with hints.
//!
//! `hf-hub` streams the files. The other requests are made here, because `hf-hub` does not limit the
//! size of a response.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::{Either, select};
use hf_hub::repository::RepoTypeModel;
use hf_hub::{HFClient, HFError, HFRepository};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, Url};
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::error::{ErrorResponse, HubError, HubErrorKind};
use super::id::is_commit;
use super::memory_growth::wait_for_growth;
use super::redirects::{MAX_REDIRECTS, redirect_policy};
use super::remote_file::{Checksum, RemoteFile};
use super::{HubSettings, RepoRef, RetryPolicy};
use crate::support::network::response_body::read_body;

/// Maximum bytes of a list of files.
const MAX_LISTING_BYTES: usize = 16 << 20;
/// Maximum bytes of an error response to a download.
const MAX_ERROR_BYTES: u64 = 256 << 20;
/// Maximum characters of a header in an error message.
const MAX_PRINTED_CHARS: usize = 80;

/// Client of the hub for one repository.
pub(super) struct HubClient<'a> {
    repo: &'a RepoRef,
    settings: &'a HubSettings,
    model: HFRepository<RepoTypeModel>,
    client: reqwest::Client,
    no_redirects: reqwest::Client,
    runtime: Runtime,
}

/// The fields of a repository that downloads use.
#[derive(Deserialize)]
struct RepoInfo {
    sha: Option<String>,
    siblings: Option<Vec<RepoFile>>,
}

/// A file in the list of a repository.
#[derive(Deserialize)]
struct RepoFile {
    rfilename: String,
}

impl<'a> HubClient<'a> {
    /// Creates a client with these settings.
    pub(super) fn new(settings: &'a HubSettings, repo: &'a RepoRef) -> Result<Self, HubError> {
        let setup_error = |error: &(dyn Error + 'static)| {
            let message = format!("cannot set up the hub client: {}", root_cause(error));
            let hint = "check HF_ENDPOINT, and that CA certificates are installed";
            HubError::new(HubErrorKind::Setting, message, hint)
        };
        let client = |redirects| {
            let client = reqwest::Client::builder()
                .user_agent(concat!("acem3/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(settings.retry.connect_timeout)
                .read_timeout(settings.retry.read_timeout)
                .referer(false)
                .redirect(redirects);
            let is_local = settings.endpoint.is_local();
            let client = if is_local { client.no_proxy() } else { client };
            client.build().map_err(|error| setup_error(&error))
        };
        let following = client(redirect_policy(settings.allow_http))?;
        // `hf-hub` does not retry interrupted bodies, so `retry` handles all retries.
        let hub = HFClient::builder().endpoint(settings.endpoint.as_str());
        let hub = hub.cache_enabled(false).retry_max_attempts(0);
        let token = settings.token.iter();
        let hub = token.fold(hub, |hub, token| hub.token(token.secret()));
        let hub = hub.client(following.clone()).build();
        let (owner, name) = hf_hub::split_id(repo.id());
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            repo,
            settings,
            model: hub.map_err(|error| setup_error(&error))?.model(owner, name),
            client: following,
            no_redirects: client(Policy::none())?,
            runtime: runtime.map_err(|error| setup_error(&error))?,
        })
    }

    /// Requests the commit of the revision and the paths of its files.
    pub(super) fn list_files(&self) -> Result<(String, Vec<String>), HubError> {
        let mut url = self.url(&["api", "models"], &["revision", self.repo.revision()])?;
        url.query_pairs_mut().append_pair("expand", "sha").append_pair("expand", "siblings");
        let body = self.retry(|| self.block_on(self.request_listing(url.clone())))?;
        let info: RepoInfo = serde_json::from_slice(&body)
            .map_err(|error| self.bad_response(None, &format!("malformed response: {error}")))?;
        let commit = info.sha.filter(|sha| is_commit(sha));
        let commit = commit.ok_or_else(|| self.bad_response(None, "the response has no commit"))?;
        let files = info.siblings;
        let files =
            files.ok_or_else(|| self.bad_response(None, "the response has no list of files"))?;
        Ok((commit, files.into_iter().map(|file| file.rfilename).collect()))
    }

    /// Requests size and hash of a file from the hub itself: redirects to other hosts are not
    /// followed.
    pub(super) fn remote_file(&self, commit: &str, name: &str) -> Result<RemoteFile, HubError> {
        let response = self.retry(|| self.block_on(self.request_headers(commit, name)))?;
        let invalid = |why: &str| Err(self.bad_response(Some(name), why));
        if let Some(other) = header(&response, "x-repo-commit").filter(|other| *other != commit) {
            let other: String = other.chars().take(MAX_PRINTED_CHARS).collect();
            return invalid(&format!("expected commit {commit}, found {other}"));
        }
        let length = header(&response, "content-length");
        let length = length.filter(|_| response.status().is_success());
        let size = header(&response, "x-linked-size").or(length);
        let etag = header(&response, "x-linked-etag").or_else(|| header(&response, "etag"));
        match (etag.and_then(Checksum::parse), size.and_then(|size| size.parse().ok())) {
            (Some(hash), Some(size)) => Ok(RemoteFile { name: name.to_owned(), size, hash }),
            (None, _) => invalid("the response has no hash, so the file cannot be verified"),
            (_, None) => invalid("the response has no size"),
        }
    }

    /// Requests a byte range of a file. Returns the content length, if the server states one, and a
    /// stream of the bytes.
    #[expect(
        clippy::type_complexity,
        reason = "the stream type of hf-hub has no name, so a type alias is not possible"
    )]
    pub(super) fn open(
        &self,
        commit: &str,
        name: &str,
        range: Range<u64>,
    ) -> Result<
        (Option<u64>, impl Stream<Item = Result<impl AsRef<[u8]>, HFError>> + Unpin),
        HubError,
    > {
        let request = self.model.download_file_stream();
        let request = request.filename(name).revision(commit);
        let request = request.maybe_range((range.start > 0).then_some(range));
        // `hf-hub` reads the whole body of an error response.
        let limit = self.settings.retry.metadata_timeout;
        let response = self.block_on(async {
            let growth = wait_for_growth(MAX_ERROR_BYTES);
            match select(pin!(timeout(limit, request.send())), pin!(growth)).await {
                Either::Left((response, _)) => Some(response),
                Either::Right(_) => None,
            }
        });
        match response {
            Some(Ok(response)) => response.map_err(|error| self.hub_error(Some(name), error)),
            Some(Err(_)) => {
                let why = format!("no complete response in {} s", limit.as_secs());
                Err(self.transient_error(Some(name), &why))
            }
            None => {
                let why = format!("the error response is longer than {MAX_ERROR_BYTES} bytes");
                Err(self.bad_response(Some(name), &why))
            }
        }
    }

    /// Waits for a response, or for the next bytes of its body.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Repeats `attempt` while it fails with [`HubErrorKind::Unavailable`], up to the limit.
    pub(super) fn retry<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        let mut pause = self.settings.retry.pause;
        for _ in 1..self.settings.retry.attempts {
            match attempt() {
                Err(error) if error.kind == HubErrorKind::Unavailable => {}
                result => return result,
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2).min(Duration::from_secs(30));
        }
        attempt()
    }

    /// Converts an error of `hf-hub`. Omits its message, which may contain a signed URL.
    pub(super) fn hub_error(&self, file: Option<&str>, error: HFError) -> HubError {
        use HFError as E;
        let context = match error {
            E::Request { source, .. } => return self.connection_error(file, &source),
            E::Xet { operation, .. } => {
                return self.transient_error(file, &format!("the {operation} failed"));
            }
            E::AuthRequired { context } | E::Forbidden { context } | E::Http { context } => {
                Some(context)
            }
            E::RateLimited { context, .. } => Some(context),
            E::RepoNotFound { context, .. }
            | E::RevisionNotFound { context, .. }
            | E::EntryNotFound { context, .. } => context,
            _ => None,
        };
        let Some(context) = context else {
            return self.bad_response(file, "malformed response");
        };
        self.status_error(
            file,
            &ErrorResponse {
                status: context.status.as_u16(),
                code: context.error_code.as_deref().unwrap_or_default(),
                message: context.server_message.as_deref().unwrap_or_default(),
                had_token: self.settings.token.is_some(),
            },
        )
    }

    /// Creates an error of a failed connection, for which [`Self::retry`] makes another attempt.
    pub(super) fn transient_error(&self, file: Option<&str>, why: &str) -> HubError {
        let (name, hub) = (self.display_name(file), self.settings.endpoint.as_str());
        let message = format!("{name}: the connection to {hub} failed: {why}");
        let hint = "check the network, the proxy and HF_ENDPOINT, then run the same command again: \
                    downloads resume; pass --offline to use downloaded files";
        HubError::new(HubErrorKind::Unavailable, message, hint)
    }

    /// Creates an error of a download that receives almost nothing. Another attempt would not be
    /// faster.
    pub(super) fn slow_error(&self, file: &str) -> HubError {
        let seconds = self.settings.retry.slow_timeout.as_secs();
        let why = format!("fewer than {} bytes in {seconds} s", RetryPolicy::MIN_BYTES);
        let mut error = self.transient_error(Some(file), &why);
        error.kind = HubErrorKind::Unreachable;
        error
    }

    /// Returns the timeouts and retries.
    pub(super) fn retry_policy(&self) -> RetryPolicy {
        self.settings.retry
    }

    fn bad_response(&self, file: Option<&str>, why: &str) -> HubError {
        HubError::bad_response(&self.display_name(file), why)
    }

    /// Returns `owner/name`, or `owner/name/path` for a file.
    fn display_name(&self, file: Option<&str>) -> String {
        let id = self.repo.id();
        file.map_or(id.to_owned(), |file| format!("{id}/{file}"))
    }

    /// Returns the URL of the repository below `prefix`, with `path` after it.
    fn url(&self, prefix: &[&str], path: &[&str]) -> Result<Url, HubError> {
        let mut url = self.settings.endpoint.url().clone();
        {
            let segments = url.path_segments_mut();
            let mut segments =
                segments.map_err(|()| self.bad_response(None, "the URL has no path"))?;
            segments.pop_if_empty().extend(prefix).extend(self.repo.id().split('/')).extend(path);
        }
        Ok(url)
    }

    /// Requests the list of files.
    async fn request_listing(&self, url: Url) -> Result<Vec<u8>, HubError> {
        let request = self.client.get(url).timeout(self.settings.retry.metadata_timeout);
        let mut response = self.send(request, None).await?;
        let body = read_body(&mut response, MAX_LISTING_BYTES).await;
        let body = body.map_err(|error| self.connection_error(None, &error))?;
        body.ok_or_else(|| {
            let why = format!("the list of files is longer than {MAX_LISTING_BYTES} bytes");
            self.bad_response(None, &why)
        })
    }

    /// Requests the headers of a file. Follows redirects within the hub, up to the first response
    /// with a hash.
    async fn request_headers(&self, commit: &str, name: &str) -> Result<Response, HubError> {
        let path: Vec<&str> = ["resolve", commit].into_iter().chain(name.split('/')).collect();
        let mut url = self.url(&[], &path)?;
        for _ in 0..=MAX_REDIRECTS {
            let request = self.no_redirects.head(url.clone());
            let request = request.timeout(self.settings.retry.metadata_timeout);
            let response = self.send(request, Some(name)).await?;
            let next = header(&response, "location").and_then(|location| url.join(location).ok());
            let is_redirect = response.status().is_redirection();
            match next.filter(|next| is_redirect && next.origin() == url.origin()) {
                Some(next) if header(&response, "x-linked-etag").is_none() => url = next,
                _ => return Ok(response),
            }
        }
        Err(self.bad_response(Some(name), "too many redirects"))
    }

    /// Sends a request with the token. A response with an error status is an error, described by
    /// its status and headers; its body is not read.
    ///
    /// `reqwest` drops the token when a redirect leads to another host or port.
    async fn send(
        &self,
        request: RequestBuilder,
        file: Option<&str>,
    ) -> Result<Response, HubError> {
        let token = self.settings.token.iter();
        let request = token.fold(request, |request, token| request.bearer_auth(token.secret()));
        let response = request.send().await;
        let response = response.map_err(|error| self.connection_error(file, &error))?;
        let status = response.status();
        if status.is_success() || status.is_redirection() {
            return Ok(response);
        }
        Err(self.status_error(
            file,
            &ErrorResponse {
                status: status.as_u16(),
                code: header(&response, "x-error-code").unwrap_or_default(),
                message: header(&response, "x-error-message").unwrap_or_default(),
                had_token: self.settings.token.is_some(),
            },
        ))
    }

    /// Creates the error of a response with an error status.
    fn status_error(&self, file: Option<&str>, response: &ErrorResponse<'_>) -> HubError {
        HubError::from_response(self.repo.id(), self.repo.revision(), file, response)
    }

    /// Converts a connection error. An unknown host or a missing route is not retried, because it
    /// rarely recovers within seconds.
    fn connection_error(&self, file: Option<&str>, error: &reqwest::Error) -> HubError {
        use io::ErrorKind::{HostUnreachable, NetworkUnreachable, PermissionDenied};
        let cause = root_cause(error);
        let why = cause.to_string();
        if cause.is::<serde_json::Error>() || error.is_redirect() {
            return self.bad_response(file, &format!("malformed response: {why}"));
        }
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let mut result = self.transient_error(file, &why);
        if matches!(kind, Some(HostUnreachable | NetworkUnreachable | PermissionDenied))
            || why.starts_with("failed to lookup address")
        {
            result.kind = HubErrorKind::Unreachable;
        }
        result
    }
}

/// Returns the value of a header, if it is text.
fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Returns the innermost error.
fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
}

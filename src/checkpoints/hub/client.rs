//! Requests about one repository, through `hf-hub`, with timeouts, retries and plain errors.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::time::Duration;

use futures_util::Stream;
use hf_hub::repository::RepoTypeModel;
use hf_hub::{HFClient, HFError, HFRepository};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use tokio::runtime::{Builder, Runtime};

use super::error::{HubError, HubErrorKind, Refusal};
use super::id::is_commit;
use super::remote_file::{Checksum, RemoteFile};
use super::{HubSettings, RepoRef};

/// The longest chain of redirects.
const MAX_REDIRECTS: usize = 8;

/// A client of the hub, for one repository.
pub(super) struct HubClient<'a> {
    repo: &'a RepoRef,
    settings: &'a HubSettings,
    model: HFRepository<RepoTypeModel>,
    no_redirects: reqwest::Client,
    runtime: Runtime,
}

impl<'a> HubClient<'a> {
    /// A client of the hub in the settings.
    pub(super) fn new(settings: &'a HubSettings, repo: &'a RepoRef) -> Result<Self, HubError> {
        let failed = |error: &(dyn Error + 'static)| {
            let message = format!("cannot set up the hub client: {}", root_cause(error));
            let hint = "check HF_ENDPOINT, and that CA certificates are installed";
            HubError::new(HubErrorKind::Input, message, hint)
        };
        let client = |redirects| {
            let client = reqwest::Client::builder()
                .user_agent(concat!("acem3/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(settings.retry.connect_timeout)
                .read_timeout(settings.retry.read_timeout)
                .referer(false)
                .redirect(redirects);
            let is_local = settings.is_local();
            let client = if is_local { client.no_proxy() } else { client };
            client.build().map_err(|error| failed(&error))
        };
        // `reqwest` drops the token when a redirect leads to another host or port.
        let redirects = Policy::custom(|attempt| {
            let from = attempt.previous().last().map_or("", Url::scheme);
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("too many redirects")
            } else if from == "https" && attempt.url().scheme() != "https" {
                attempt.error("a redirect from https to http")
            } else {
                attempt.follow()
            }
        });
        // The retries of `hf-hub` leave out bodies, so `retry` covers all requests instead.
        let hub = HFClient::builder().endpoint(&settings.endpoint);
        let hub = hub.cache_enabled(false).retry_max_attempts(0);
        let token = settings.token.iter();
        let hub = token.fold(hub, |hub, token| hub.token(token.secret()));
        let hub = hub.client(client(redirects)?).build();
        let (owner, name) = hf_hub::split_id(repo.id());
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            repo,
            settings,
            model: hub.map_err(|error| failed(&error))?.model(owner, name),
            no_redirects: client(Policy::none())?,
            runtime: runtime.map_err(|error| failed(&error))?,
        })
    }

    /// The commit of the revision, and the paths of its files.
    pub(super) fn files(&self) -> Result<(String, Vec<String>), HubError> {
        let fields = ["sha", "siblings"].map(str::to_owned).to_vec();
        let info = self.retry(|| {
            let request = self.model.info().revision(self.repo.revision());
            let answer = self.block_on(request.expand(fields.clone()).send());
            answer.map_err(|error| self.hub_error(None, error))
        })?;
        let commit = info.sha.filter(|sha| is_commit(sha));
        let commit = commit.ok_or_else(|| self.bad_answer(None, "the hub names no commit"))?;
        let files = info.siblings;
        let files = files.ok_or_else(|| self.bad_answer(None, "the hub lists no files"))?;
        Ok((
            commit,
            files.into_iter().map(|file| file.rfilename).collect(),
        ))
    }

    /// Size and hash of a file, as the hub itself states them: no redirect to another host is followed.
    pub(super) fn remote_file(&self, commit: &str, name: &str) -> Result<RemoteFile, HubError> {
        let response = self.retry(|| self.block_on(self.head(commit, name)))?;
        let bad = |why: &str| Err(self.bad_answer(Some(name), why));
        if let Some(other) = header(&response, "x-repo-commit").filter(|other| *other != commit) {
            return bad(&format!(
                "expected commit {commit}, the hub answers for {other}"
            ));
        }
        let length = header(&response, "content-length");
        let length = length.filter(|_| response.status().is_success());
        let size = header(&response, "x-linked-size").or(length);
        let etag = header(&response, "x-linked-etag").or_else(|| header(&response, "etag"));
        match (
            etag.and_then(Checksum::parse),
            size.and_then(|size| size.parse().ok()),
        ) {
            (Some(hash), Some(size)) => Ok(RemoteFile {
                name: name.to_owned(),
                size,
                hash,
            }),
            (None, _) => bad("the hub states no hash, so the file cannot be verified"),
            (_, None) => bad("the hub states no size"),
        }
    }

    /// Opens a file at a range of bytes: the length of the answer, if the server states one, and the bytes.
    #[expect(
        clippy::type_complexity,
        reason = "the stream of hf-hub has no name, so the pair has no alias"
    )]
    pub(super) fn open(
        &self,
        commit: &str,
        name: &str,
        range: Range<u64>,
    ) -> Result<
        (
            Option<u64>,
            impl Stream<Item = Result<impl AsRef<[u8]>, HFError>> + Unpin,
        ),
        HubError,
    > {
        let request = self.model.download_file_stream();
        let request = request.filename(name).revision(commit);
        let request = request.maybe_range((range.start > 0).then_some(range));
        let answer = self.block_on(request.send());
        answer.map_err(|error| self.hub_error(Some(name), error))
    }

    /// Waits for an answer, or for the next bytes of one.
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

    /// An error of `hf-hub`. Its own text may contain a signed URL, so it is not used.
    pub(super) fn hub_error(&self, file: Option<&str>, error: HFError) -> HubError {
        use HFError as E;
        let context = match error {
            E::Request { source, .. } => return self.connection_error(file, &source),
            E::Xet { operation, .. } => {
                return self.interrupted(file, &format!("the {operation} failed"));
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
            return self.bad_answer(file, "the hub's answer is malformed");
        };
        HubError::refused(
            self.repo.id(),
            self.repo.revision(),
            file,
            &Refusal {
                status: context.status.as_u16(),
                code: context.error_code.as_deref().unwrap_or_default(),
                message: context.server_message.as_deref().unwrap_or_default(),
                had_token: self.settings.token.is_some(),
            },
        )
    }

    /// An error that another attempt may cure.
    pub(super) fn interrupted(&self, file: Option<&str>, why: &str) -> HubError {
        let (name, hub) = (self.name(file), &self.settings.endpoint);
        let message = format!("{name}: the connection to {hub} failed: {why}");
        let hint = "check the network, the proxy and HF_ENDPOINT, then run the same command again: \
                    downloads resume; --offline uses what is downloaded";
        HubError::new(HubErrorKind::Unavailable, message, hint)
    }

    fn bad_answer(&self, file: Option<&str>, why: &str) -> HubError {
        HubError::bad_answer(&self.name(file), why)
    }

    /// `owner/name`, with the path of the file.
    fn name(&self, file: Option<&str>) -> String {
        let id = self.repo.id();
        file.map_or(id.to_owned(), |file| format!("{id}/{file}"))
    }

    /// The headers of a file. Redirects within the hub are followed, up to the first that states a hash.
    async fn head(&self, commit: &str, name: &str) -> Result<Response, HubError> {
        let mut url = Url::parse(&self.settings.endpoint)
            .map_err(|error| self.bad_answer(None, &error.to_string()))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(self.repo.id().split('/'));
            path.extend(["resolve", commit]).extend(name.split('/'));
        }
        for _ in 0..=MAX_REDIRECTS {
            let request = self.no_redirects.head(url.clone());
            let token = self.settings.token.iter();
            let request = token.fold(request, |request, token| {
                request.bearer_auth(token.secret())
            });
            let response = request.send().await;
            let response = response.map_err(|error| self.connection_error(Some(name), &error))?;
            let status = response.status();
            if status.is_client_error() || status.is_server_error() {
                let refusal = Refusal {
                    status: status.as_u16(),
                    code: header(&response, "x-error-code").unwrap_or_default(),
                    message: header(&response, "x-error-message").unwrap_or_default(),
                    had_token: self.settings.token.is_some(),
                };
                return Err(HubError::refused(
                    self.repo.id(),
                    self.repo.revision(),
                    Some(name),
                    &refusal,
                ));
            }
            let next = header(&response, "location").and_then(|location| url.join(location).ok());
            match next.filter(|next| status.is_redirection() && next.origin() == url.origin()) {
                Some(next) if header(&response, "x-linked-etag").is_none() => url = next,
                _ => return Ok(response),
            }
        }
        Err(self.bad_answer(Some(name), "too many redirects"))
    }

    /// An error of the connection. A missing host or route does not come back within seconds.
    fn connection_error(&self, file: Option<&str>, error: &reqwest::Error) -> HubError {
        use io::ErrorKind::{HostUnreachable, NetworkUnreachable, PermissionDenied};
        let cause = root_cause(error);
        let why = cause.to_string();
        if cause.is::<serde_json::Error>() || error.is_redirect() {
            return self.bad_answer(file, &format!("the hub's answer is malformed: {why}"));
        }
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let mut result = self.interrupted(file, &why);
        if matches!(
            kind,
            Some(HostUnreachable | NetworkUnreachable | PermissionDenied)
        ) || why.starts_with("failed to lookup address")
        {
            result.kind = HubErrorKind::Unreachable;
        }
        result
    }
}

/// The value of a header, if it is text.
fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// The innermost error.
fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
}

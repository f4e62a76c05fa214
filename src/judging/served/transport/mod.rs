//! Requests to one server: connections, retries, and a limit on the requests in progress.

mod api_error;
mod backoff;
mod count_guard;
pub(super) mod job_requests;
mod limiter;
mod outage;
mod request_error;
pub(super) mod usage;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use reqwest::{Client, Response};

use self::api_error::{error_message, says_too_long};
use self::backoff::Backoff;
use self::count_guard::CountGuard;
use self::limiter::{AttemptOutcome, Limiter};
use self::outage::{FailedAttempt, NOTED_AFTER, Outage, OutageLimit};
pub(in crate::judging::served) use self::request_error::RequestError;
use crate::judging::served::endpoint::ServedModel;
use crate::support::network::access_token::AccessToken;
use crate::support::network::http_client::{CONNECT_TIMEOUT, build_client, root_cause};
use crate::support::network::response_body::{read_body, read_error_body};
use crate::support::terminal::progress::{format_duration, print_lines};

/// Maximum size of a response: a text of some thousand tokens with alternatives.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Maximum bytes of an error response that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Attempts of a request whose failures may pass.
const MAX_ATTEMPTS: u32 = 8;
/// Attempts of a request that the server answers with 500: often the request is at fault.
const MAX_SERVER_ERRORS: u32 = 3;
/// Failed requests that an outage has at least, unless fewer are unfinished.
const MIN_FAILURES: u32 = 3;

/// Limits on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Maximum number of requests in progress.
    pub concurrency: usize,
    /// Timeout of an attempt with its complete response.
    pub timeout: Duration,
    /// If no request of a server succeeds for this long, the run ends.
    pub max_outage: Duration,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            concurrency: 32,
            timeout: Duration::from_mins(10),
            max_outage: Duration::from_mins(2),
        }
    }
}

/// The result of one attempt that gave no body.
enum AttemptError {
    /// Another attempt may succeed. `pause`: what the server demands.
    Transient { reason: String, pause: Option<Duration>, failure: Failure },
    /// No other attempt can succeed.
    Final(RequestError),
}

/// What failed in an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// There is no connection, or the response was cut.
    Connection,
    /// There was no complete response in time.
    Timeout,
    /// The server has no capacity now.
    Busy,
    /// The server failed, or its response is unreadable. Often the request is at fault.
    Server,
}

impl Failure {
    fn outcome(self) -> AttemptOutcome {
        match self {
            Self::Connection | Self::Server => AttemptOutcome::Failed,
            Self::Timeout | Self::Busy => AttemptOutcome::Overloaded,
        }
    }
}

/// Sends requests to one server.
#[derive(Debug)]
pub(in crate::judging::served) struct Transport {
    client: Client,
    base: String,
    key: Option<AccessToken>,
    limits: RequestLimits,
    limiter: Limiter,
    backoff: Backoff,
    outage: Outage,
    /// Number of requests that have no result yet.
    unfinished: AtomicU32,
}

impl Transport {
    /// Creates a transport.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be set up.
    pub(in crate::judging::served) fn new(
        model: &ServedModel,
        limits: RequestLimits,
    ) -> Result<Self> {
        let idle = limits.concurrency;
        let client = build_client(&model.url, |client| client.pool_max_idle_per_host(idle))?;
        Ok(Self {
            client,
            base: model.url.as_str().to_owned(),
            key: model.key.clone(),
            limits,
            limiter: Limiter::new(limits.concurrency),
            backoff: Backoff::default(),
            outage: Outage::default(),
            unfinished: AtomicU32::new(0),
        })
    }

    /// Sends a body to a path below the base URL, again if it fails, and reads the response with
    /// `parse`. A response that `parse` rejects was cut or damaged, so it is requested again.
    pub(in crate::judging::served) async fn post<T>(
        &self,
        path: &str,
        body: String,
        parse: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<T, RequestError> {
        let _unfinished = CountGuard::new(&self.unfinished);
        let body = bytes::Bytes::from(body);
        let mut server_errors = 0;
        for attempt in 1.. {
            let permit = self.limiter.acquire(job_requests::current_job()).await;
            if !job_requests::mark_sent() {
                return Err(RequestError::Failed("the run was interrupted".to_owned()));
            }
            let sent = Instant::now();
            let result = self.attempt(path, body.clone()).await.and_then(|bytes| {
                parse(&bytes).map_err(|reason| AttemptError::Transient {
                    reason: format!("{reason}: {}", self.excerpt(&bytes)),
                    pause: None,
                    failure: Failure::Server,
                })
            });
            match result {
                Ok(value) => {
                    permit.finish(AttemptOutcome::Succeeded);
                    self.outage.end();
                    return Ok(value);
                }
                Err(AttemptError::Final(error)) => {
                    // The server works.
                    self.outage.end();
                    permit.finish(AttemptOutcome::Succeeded);
                    return Err(error);
                }
                Err(AttemptError::Transient { reason, pause: demanded, failure }) => {
                    let outcome = failure.outcome();
                    permit.finish(outcome);
                    server_errors += u32::from(failure == Failure::Server);
                    let pause = self.backoff.pause(attempt, outcome, demanded);
                    let now = Instant::now();
                    let failed = FailedAttempt { reason: &reason, demanded, pause, sent, now };
                    let unfinished = self.unfinished.load(Ordering::Relaxed);
                    let limit = OutageLimit {
                        longest: self.limits.max_outage,
                        min_failures: MIN_FAILURES.min(unfinished),
                    };
                    let pause = self.outage.pause_after(failed, limit);
                    let pause = pause.map_err(RequestError::Outage)?;
                    let reason = || format!("{reason} ({attempt} attempts)");
                    if server_errors >= MAX_SERVER_ERRORS {
                        return Err(RequestError::Broken(reason()));
                    }
                    if attempt >= MAX_ATTEMPTS {
                        return Err(RequestError::Failed(reason()));
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Err(RequestError::Failed("no request was sent".to_owned()))
    }

    /// Gets a small JSON document; `None` if the server has none there. `path` is below the base URL,
    /// or below the host if it begins with `/`. Waits while the server has no capacity, for example because
    /// it still loads the model.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, rejects the key, or has no capacity for the time of an outage.
    pub(in crate::judging::served) async fn get_json(
        &self,
        path: &str,
    ) -> Result<Option<serde_json::Value>, RequestError> {
        let (url, outage) = (self.url_of(path), Outage::default());
        let timeout = self.limits.timeout.min(CONNECT_TIMEOUT);
        for attempt in 1.. {
            let sent = Instant::now();
            let (reason, demanded) = match self.send(self.client.get(&url).timeout(timeout)).await {
                Ok(bytes) => return Ok(serde_json::from_slice(&bytes).ok()),
                Err(AttemptError::Final(
                    error @ (RequestError::Denied(_) | RequestError::Unusable(_)),
                )) => return Err(error),
                Err(AttemptError::Transient { reason, pause, failure: Failure::Busy }) => {
                    (reason, pause)
                }
                Err(AttemptError::Transient {
                    reason,
                    failure: Failure::Connection | Failure::Timeout,
                    ..
                }) => return Err(RequestError::Unreachable(reason)),
                Err(AttemptError::Final(_) | AttemptError::Transient { .. }) => return Ok(None),
            };
            let pause = self.backoff.pause(attempt, AttemptOutcome::Overloaded, demanded);
            let now = Instant::now();
            let failed = FailedAttempt { reason: &reason, demanded, pause, sent, now };
            let limit = OutageLimit { longest: self.limits.max_outage, min_failures: 1 };
            let pause = outage.pause_after(failed, limit).map_err(RequestError::Outage)?;
            tokio::time::sleep(pause).await;
        }
        Ok(None)
    }

    async fn attempt(&self, path: &str, body: bytes::Bytes) -> Result<Vec<u8>, AttemptError> {
        let request = self.client.post(self.url_of(path)).timeout(self.limits.timeout);
        let answer = self.send(request.header("content-type", "application/json").body(body));
        let mut answer = std::pin::pin!(answer);
        if self.outage.is_untried() {
            if let Ok(answer) = tokio::time::timeout(NOTED_AFTER, &mut answer).await {
                return answer;
            }
            let timeout = format_duration(self.limits.timeout.as_secs_f64());
            print_lines(&format!(
                "waiting for the first answer of the server, at most {timeout} (--request-timeout)"
            ));
        }
        answer.await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, AttemptError> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.secret()),
            None => request,
        };
        let failed = |error: &reqwest::Error| AttemptError::Transient {
            reason: describe_failure(error),
            pause: None,
            failure: if error.is_timeout() { Failure::Timeout } else { Failure::Connection },
        };
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        if response.status().as_u16() != 200 {
            return Err(self.read_error(response).await);
        }
        let body = read_body(&mut response, MAX_RESPONSE_BYTES).await;
        let body = body.map_err(|error| failed(&error))?.ok_or_else(|| {
            AttemptError::Final(RequestError::Failed(format!(
                "the response is longer than {MAX_RESPONSE_BYTES} bytes"
            )))
        })?;
        // Records, reports and messages contain parts of the response.
        Ok(match &self.key {
            Some(key) => key.hide_in_body(body),
            None => body,
        })
    }

    /// Classifies a response with another status than 200.
    async fn read_error(&self, mut response: Response) -> AttemptError {
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after");
        let pause = retry_after.and_then(|value| backoff::parse_retry_after(value.to_str().ok()?));
        let location = response.headers().get("location");
        let location = location.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        let body = read_error_body(&mut response, MAX_ERROR_BYTES).await;
        let message = error_message(&body, self.key.as_ref());
        let reason = format!("status {status}: {message}");
        match status {
            400 | 413 | 422 if says_too_long(&message) => {
                AttemptError::Final(RequestError::TooLong(reason))
            }
            400 | 413 | 422 => AttemptError::Final(RequestError::Rejected(reason)),
            408 | 409 | 425 | 429 | 502..=504 | 529 => {
                AttemptError::Transient { reason, pause, failure: Failure::Busy }
            }
            500.. => AttemptError::Transient { reason, pause, failure: Failure::Server },
            300..400 => {
                let target = location.map_or("another address".to_owned(), |location| {
                    error_message(location.as_bytes(), self.key.as_ref())
                });
                AttemptError::Final(RequestError::Redirected(format!(
                    "status {status}: the server redirects to {target}"
                )))
            }
            401 | 403 => AttemptError::Final(RequestError::Denied(reason)),
            404 | 405 => AttemptError::Final(RequestError::Missing(reason)),
            _ => AttemptError::Final(RequestError::Unusable(reason)),
        }
    }

    /// Returns true if requests of a model can use this connection: its server and key are the same.
    pub(in crate::judging::served) fn serves(&self, model: &ServedModel) -> bool {
        self.base == model.url.as_str() && self.key == model.key
    }

    fn url_of(&self, path: &str) -> String {
        match path.strip_prefix('/') {
            // The base ends with `/v1`; some paths of engines are beside it.
            Some(rest) => format!("{}/{rest}", self.base.trim_end_matches("/v1")),
            None => format!("{}/{path}", self.base),
        }
    }

    /// Returns the start of a body for messages, without the key.
    fn excerpt(&self, body: &[u8]) -> String {
        error_message(body, self.key.as_ref())
    }
}

/// Describes a request that failed.
fn describe_failure(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "no complete response in time (--request-timeout)".to_owned()
    } else {
        root_cause(error)
    }
}

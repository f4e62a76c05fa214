//! HTTP clients of services that the user names.

use std::error::Error;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::support::network::service_url::ServiceUrl;

/// Connection timeout.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Builds a client of a service. It follows no redirects, because they would send the key and the data to
/// another host, and uses no proxy for a service on this machine.
///
/// # Errors
///
/// The client cannot be set up.
pub fn build_client(
    base: &ServiceUrl,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client> {
    let client = Client::builder()
        .user_agent(concat!("acem3/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT);
    let client = if base.is_local() { client.no_proxy() } else { client };
    let client = configure(client).build();
    client.context("cannot set up the HTTP client\nhint: check that CA certificates are installed")
}

/// Returns the innermost cause of an error; the outer errors repeat the URL.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

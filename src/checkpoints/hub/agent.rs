//! What requests are made with: no redirects, no patience without end, no proxy for this machine.

use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;

/// An agent for requests to an address. A redirect is an answer like others: to follow it blindly would hand on
/// the token and what was asked.
pub(crate) fn agent(address: &Uri, connect: Duration, silence: Duration) -> Agent {
    let mut config = Agent::config_builder()
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_connect(Some(connect))
        .timeout_recv_response(Some(silence))
        .timeout_per_read(Some(silence))
        .user_agent(concat!("acem3/", env!("CARGO_PKG_VERSION")));
    if matches!(address.host(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        // A proxy would look for this machine on its own.
        config = config.proxy(None);
    }
    config.build().into()
}

//! Names of the site.

use std::net::SocketAddr;

/// Names under which the site may be visited. A request with another `Host` comes from a page that
/// pretends to be this site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHosts {
    names: Vec<String>,
    /// Those of a reverse proxy with TLS.
    encrypted: Vec<String>,
}

impl AllowedHosts {
    /// Returns the names of an address, and further names, with or without a port.
    pub fn new(address: SocketAddr, names: &[String]) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            let local = ["localhost", "127.0.0.1", "[::1]"];
            hosts.extend(local.map(|name| format!("{name}:{port}")));
        }
        let mut encrypted = Vec::new();
        for name in names {
            let name = name.to_lowercase();
            // Nobody on another machine reaches a loopback address but through a proxy.
            if address.ip().is_loopback() {
                encrypted.push(name.clone());
            }
            hosts.push(format!("{name}:{port}"));
            hosts.push(name);
        }
        Self { names: hosts, encrypted }
    }

    /// Returns true if visitors reach this `Host` through TLS.
    pub(super) fn is_encrypted(&self, host: &str) -> bool {
        self.encrypted.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Returns true if a request may have this `Host`.
    pub fn contains(&self, host: &str) -> bool {
        self.names.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    /// Returns true if a form may come from this origin.
    pub(super) fn is_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.contains(host))
    }
}

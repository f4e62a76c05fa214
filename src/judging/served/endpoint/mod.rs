//! Models behind endpoints: address, engine, key and adapters.

pub mod engine;

use std::fmt;

use anyhow::{Context as _, Result, bail};

use self::engine::ServingEngine;
use crate::checkpoints::panel::member_entry::AdapterScale;
use crate::support::network::access_token::{API_KEY_VARIABLE, AccessToken};
use crate::support::network::service_url::{ServiceUrl, UrlRules};

/// A model that an engine serves under an address.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedModel {
    /// The base URL, up to `/v1`.
    pub url: ServiceUrl,
    /// The model, as the server names it.
    pub model: String,
    /// The engine; `None` to detect it.
    pub engine: Option<ServingEngine>,
    /// The key of the server.
    pub key: Option<AccessToken>,
    /// The environment variable from which the key is read.
    pub key_variable: String,
    /// The adapters of llama.cpp's server, each with its scale. Other engines name an adapter as a
    /// model.
    pub adapters: Vec<AdapterScale>,
}

/// How the user names a model behind an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSettings<'a> {
    /// The base URL.
    pub url: &'a str,
    /// The model.
    pub model: &'a str,
    /// The engine; `None` to detect it.
    pub engine: Option<ServingEngine>,
    /// The environment variable with the key.
    pub key_variable: Option<&'a str>,
    /// Hosts other than this machine that may receive cases.
    pub allowed_hosts: &'a [String],
    /// True to accept plain http to other hosts.
    pub allow_http: bool,
    /// The adapters of llama.cpp's server.
    pub adapters: &'a [AdapterScale],
}

impl ServedModel {
    /// Checks the settings and reads the key from the environment.
    ///
    /// # Errors
    ///
    /// The URL is not acceptable, its host is not allowed, or the variable has no key.
    pub fn new(settings: EndpointSettings<'_>) -> Result<Self> {
        let variable = settings.key_variable.unwrap_or(API_KEY_VARIABLE);
        let rules = UrlRules { key_variable: variable, allow_http: settings.allow_http };
        // The message of the error does not contain the URL, which may have credentials.
        let url = ServiceUrl::parse(settings.url, rules)?;
        if !url.is_local() && !settings.allowed_hosts.iter().any(|host| url.has_host(host)) {
            let host = url.host();
            bail!(
                "{}: images and texts of the cases would leave this machine\n\
                 hint: pass --allow-host {host} if {host} may see them",
                url.as_str()
            );
        }
        if settings.model.trim().is_empty() {
            bail!(
                "{}: no model\nhint: pass --model with a name that the server lists",
                url.as_str()
            );
        }
        let adapters = settings.adapters;
        if let Some(invalid) = adapters.iter().find(|adapter| !adapter.scale.is_finite()) {
            bail!(
                "the scale of the adapter {} is {}, expected a number",
                invalid.id,
                invalid.scale
            );
        }
        Ok(Self {
            url,
            model: settings.model.to_owned(),
            engine: settings.engine,
            key: read_key(settings.key_variable)?,
            key_variable: variable.to_owned(),
            adapters: adapters.to_vec(),
        })
    }
}

impl ServedModel {
    /// Says what to do if the server rejects the key.
    pub fn key_hint(&self) -> String {
        let variable = &self.key_variable;
        match self.key {
            Some(_) => format!("hint: check the key in the environment variable {variable}"),
            None => format!(
                "hint: set the environment variable {variable} to the key of the server, or name another one with \
                 --api-key-env"
            ),
        }
    }
}

/// Reads the key of a server. Only a variable that the user names must have one.
fn read_key(variable: Option<&str>) -> Result<Option<AccessToken>> {
    let name = variable.unwrap_or(API_KEY_VARIABLE);
    let key = std::env::var(name).ok().and_then(|text| AccessToken::new(&text));
    if let Some(key) = &key
        && !key.is_word()
    {
        bail!(
            "{name}: the key is not one word of ASCII characters\nhint: set {name} to the key of \
             the server, without quotes and spaces"
        );
    }
    if variable.is_some() && key.is_none() && !is_usual_name(name) {
        bail!(
            "--api-key-env (`api_key_env` in a panel file): this is not the name of an environment variable with a key\n\
             hint: pass a name such as {API_KEY_VARIABLE}, not the key itself, and set the variable to the key"
        );
    }
    if variable.is_some() && key.is_none() {
        return Err(anyhow::anyhow!("the environment variable {name} has no key"))
            .context(format!("hint: set {name} to the key of the server"));
    }
    Ok(key)
}

/// Returns true if a text looks like the name of a variable and not like a key.
fn is_usual_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && text.chars().all(is_allowed)
}

impl fmt::Display for ServedModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}", self.model, self.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> EndpointSettings<'_> {
        EndpointSettings {
            url,
            model: "m",
            engine: None,
            key_variable: None,
            allowed_hosts: &[],
            allow_http: false,
            adapters: &[],
        }
    }

    #[test]
    fn other_hosts_need_permission() {
        assert!(ServedModel::new(settings("http://127.0.0.1:8000/v1")).is_ok());
        let error = ServedModel::new(settings("https://judge.example/v1")).unwrap_err();
        assert!(format!("{error:#}").contains("--allow-host judge.example"), "{error:#}");
        let hosts = ["Judge.example".to_owned()];
        let allowed =
            EndpointSettings { allowed_hosts: &hosts, ..settings("https://judge.example/v1") };
        assert!(ServedModel::new(allowed).is_ok());
        let other =
            EndpointSettings { allowed_hosts: &hosts, ..settings("https://judge.example.org/v1") };
        assert!(ServedModel::new(other).is_err());
    }

    #[test]
    fn named_variable_without_key_is_an_error() {
        let named = EndpointSettings {
            key_variable: Some("ACEM3_TEST_NO_SUCH_KEY"),
            ..settings("http://localhost/v1")
        };
        let error = ServedModel::new(named).unwrap_err();
        assert!(format!("{error:#}").contains("ACEM3_TEST_NO_SUCH_KEY"), "{error:#}");
        let key = EndpointSettings { key_variable: Some("sk-0123456789"), ..named };
        let error = format!("{:#}", ServedModel::new(key).unwrap_err());
        assert!(!error.contains("sk-") && error.contains("not the key itself"), "{error}");
    }
}

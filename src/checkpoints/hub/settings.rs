//! Settings of the hub, from the environment variables of the Python tools (reference: `huggingface_hub/constants.py`).
//! `hf-hub` reads some of them itself; they are read here so that all are honoured and checked.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use super::error::{HubError, HubErrorKind};

/// The default of `HF_ENDPOINT`.
const ENDPOINT: &str = "https://huggingface.co";

/// Where the hub and the cache are, and how to use them.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The hub's URL, without a `/` at its end.
    pub endpoint: String,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// The token of the account.
    pub token: Option<AccessToken>,
    /// The flag or variable that forbids network access, if one is set.
    pub offline: Option<&'static str>,
    /// False if snapshots hold copies instead of links.
    pub symlinks: bool,
    /// Timeouts and retries.
    pub retry: RetryPolicy,
}

/// Timeouts of requests, and how often they are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// Timeout of each read of an answer.
    pub read_timeout: Duration,
    /// Attempts in a row that bring no new byte before the request fails.
    pub attempts: u32,
    /// The pause after the first failed attempt; it doubles with each further one.
    pub pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            attempts: 4,
            pause: Duration::from_secs(1),
        }
    }
}

/// An access token. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// A token from a variable or file; `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The token itself.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

impl HubSettings {
    /// True if the hub runs on this machine: a proxy would look for it elsewhere.
    pub(super) fn is_local(&self) -> bool {
        let url = Url::parse(&self.endpoint).ok();
        let host = url.as_ref().and_then(Url::host_str);
        matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
    }

    /// Reads the settings from the environment. `offline` is the flag `--offline`.
    ///
    /// # Errors
    ///
    /// A variable or the token file is invalid.
    pub fn from_env(offline: bool) -> Result<Self, HubError> {
        Self::read(&|name| std::env::var_os(name), offline)
    }

    /// Reads the settings from variables.
    ///
    /// # Errors
    ///
    /// A variable or the token file is invalid.
    pub fn read(get: &dyn Fn(&str) -> Option<OsString>, offline: bool) -> Result<Self, HubError> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).map(|v| v.to_string_lossy().into_owned());
        let is_on = |name: &str| text(name).is_some_and(|value| is_true(&value));
        let home = set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(PathBuf::from);
        let path = |name: &str| set(name).map(|value| expand(Path::new(&value), home.as_deref()));
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        let hf_home = path("HF_HOME").or_else(|| Some(caches?.join("huggingface")));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(hf_home.as_ref()?.join("hub")))
            .ok_or_else(|| {
                invalid(
                    "HF_HOME",
                    "neither it nor HOME is set",
                    "set HF_HOME to a folder for downloads",
                )
            })?;
        let token_file = path("HF_TOKEN_PATH").or_else(|| Some(hf_home.as_ref()?.join("token")));
        let variable = text("HF_TOKEN").or_else(|| text("HUGGING_FACE_HUB_TOKEN"));
        let token = match variable.as_deref().and_then(AccessToken::new) {
            Some(token) => Some(token),
            None if is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN") => None,
            None => token_file.as_deref().map(read_token).transpose()?.flatten(),
        };
        if token
            .as_ref()
            .is_some_and(|token| !token.0.bytes().all(|b| b.is_ascii_graphic()))
        {
            let why = "the token contains a blank or a character that is not ASCII";
            return Err(invalid(
                "HF_TOKEN",
                why,
                "copy it again; it is one word that begins with hf_",
            ));
        }
        let mut variables = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter();
        Ok(Self {
            endpoint: endpoint(text("HF_ENDPOINT"))?,
            cache,
            token,
            offline: if offline {
                Some("--offline")
            } else {
                variables.find(|name| is_on(name))
            },
            symlinks: !is_on("HF_HUB_DISABLE_SYMLINKS"),
            retry: RetryPolicy::default(),
        })
    }
}

fn invalid(name: &str, why: &str, hint: &str) -> HubError {
    HubError::new(HubErrorKind::Input, format!("{name}: {why}"), hint)
}

fn endpoint(value: Option<String>) -> Result<String, HubError> {
    let endpoint = value.unwrap_or_else(|| ENDPOINT.to_owned());
    let endpoint = endpoint.trim().trim_end_matches('/');
    let is_valid = |url: &Url| {
        let plain = url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain
    };
    if !Url::parse(endpoint).as_ref().is_ok_and(is_valid) {
        let why = "expected a URL that begins with https://, without user or query";
        let hint = "unset it for the public hub, or set it to your mirror";
        return Err(invalid("HF_ENDPOINT", why, hint));
    }
    Ok(endpoint.to_owned())
}

/// The token in a file. An unreadable file is an error: without the token, the hub's answer would mislead.
fn read_token(path: &Path) -> Result<Option<AccessToken>, HubError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(AccessToken::new(&text)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => {
            let why = format!("cannot read the token: {error}");
            let hint = "make the file readable, or set HF_TOKEN";
            Err(invalid(&path.display().to_string(), &why, hint))
        }
    }
}

/// Replaces a leading `~` by the home folder.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn is_true(value: &str) -> bool {
    let mut words = ["1", "on", "yes", "true"].iter();
    words.any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], offline: bool) -> Result<HubSettings, HubError> {
        let found = |name: &str| {
            let pair = variables.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(pair.1))
        };
        HubSettings::read(&found, offline)
    }

    #[test]
    fn the_cache_is_where_the_python_tools_have_it() {
        let cache = |variables: &[(&str, &str)]| read(variables, false).unwrap().cache;
        let home = ("HOME", "/h");
        assert_eq!(cache(&[home]), Path::new("/h/.cache/huggingface/hub"));
        assert_eq!(
            cache(&[home, ("XDG_CACHE_HOME", "/c")]),
            Path::new("/c/huggingface/hub")
        );
        assert_eq!(cache(&[home, ("HF_HOME", "~/hf")]), Path::new("/h/hf/hub"));
        assert_eq!(
            cache(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/x")]),
            Path::new("/x")
        );
        assert!(read(&[], false).is_err());
    }

    #[test]
    fn the_token_comes_from_the_variable_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "hf_file\n").unwrap();
        let home = ("HF_HOME", dir.path().to_str().unwrap());
        let token = |more: &[(&str, &str)]| read(&[&[home], more].concat(), false).unwrap().token;
        assert_eq!(token(&[]), AccessToken::new("hf_file"));
        assert_eq!(
            token(&[("HF_TOKEN", " hf_named ")]),
            AccessToken::new("hf_named")
        );
        assert_eq!(token(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
        assert_eq!(format!("{:?}", token(&[])), "Some(AccessToken(…))");
        let error = read(&[home, ("HF_TOKEN", "hf_a\u{e9}b")], false).unwrap_err();
        assert!(!error.to_string().contains("hf_a\u{e9}"), "{error}");
    }

    #[test]
    fn the_flag_or_variable_that_forbids_access_is_named() {
        let offline = |pairs: &[(&str, &str)], flag| {
            read(&[&[("HOME", "/h")], pairs].concat(), flag)
                .unwrap()
                .offline
        };
        assert_eq!(offline(&[], false), None);
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "0")], false), None);
        assert_eq!(
            offline(&[("HF_HUB_OFFLINE", "YES")], false),
            Some("HF_HUB_OFFLINE")
        );
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "1")], true), Some("--offline"));
    }

    #[test]
    fn the_endpoint_is_a_url() {
        let of = |value: &str| read(&[("HOME", "/h"), ("HF_ENDPOINT", value)], false);
        assert_eq!(
            of("https://mirror.example/hub/").unwrap().endpoint,
            "https://mirror.example/hub"
        );
        assert_eq!(of("").unwrap().endpoint, ENDPOINT);
        for bad in ["mirror.example", "ftp://x", "https://", "https://user@x"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

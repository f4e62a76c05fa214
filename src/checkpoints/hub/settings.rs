//! Settings of the hub, from the environment variables of the Python tools (reference:
//! `huggingface_hub`, `constants.py`). `hf-hub` reads only some of them, so this module reads
//! and checks all of them.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use super::error::{HubError, HubErrorKind};

/// Default of `HF_ENDPOINT`.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// Location of the hub and of the cache, access token and retry policy.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// URL of the hub, without a trailing `/`.
    pub endpoint: String,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// The token of the account.
    pub token: Option<AccessToken>,
    /// The flag or variable that forbids network access, if one is set.
    pub offline: Option<&'static str>,
    /// False if snapshots contain copies instead of symlinks.
    pub symlinks: bool,
    /// Timeouts and retries.
    pub retry: RetryPolicy,
}

/// Timeouts and number of attempts of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// Timeout of each read of a response.
    pub read_timeout: Duration,
    /// Maximum number of consecutive attempts without a new byte.
    pub attempts: u32,
    /// Pause after the first failed attempt, doubled after each further one.
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

/// Access token, hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token from the text of a variable or file. Returns `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the token.
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
    /// Returns true if the hub runs on this machine. A proxy cannot reach it there.
    pub(super) fn is_local(&self) -> bool {
        let url = Url::parse(&self.endpoint).ok();
        let host = url.as_ref().and_then(Url::host_str);
        matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
    }

    /// Reads the settings from the environment. `offline` is the flag `--offline`.
    ///
    /// # Errors
    ///
    /// If a variable or the token file is invalid.
    pub fn from_env(offline: bool) -> Result<Self, HubError> {
        Self::read(&|name| std::env::var_os(name), offline)
    }

    /// Reads the settings from the variables that `get` returns.
    ///
    /// # Errors
    ///
    /// If a variable or the token file is invalid.
    pub fn read(get: &dyn Fn(&str) -> Option<OsString>, offline: bool) -> Result<Self, HubError> {
        let non_empty = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| non_empty(name).map(|v| v.to_string_lossy().into_owned());
        let is_on = |name: &str| text(name).is_some_and(|value| is_true(&value));
        let home = non_empty("HOME").or_else(|| non_empty("USERPROFILE")).map(PathBuf::from);
        let path = |name: &str| {
            non_empty(name).map(|value| expand_home(Path::new(&value), home.as_deref()))
        };
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        let hf_home = path("HF_HOME").or_else(|| Some(caches?.join("huggingface")));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(hf_home.as_ref()?.join("hub")))
            .ok_or_else(|| {
                setting_error(
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
        if token.as_ref().is_some_and(|token| !token.0.bytes().all(|b| b.is_ascii_graphic())) {
            let why = "the token contains a space or a character that is not ASCII";
            return Err(setting_error(
                "HF_TOKEN",
                why,
                "copy it again; it is one word that begins with hf_",
            ));
        }
        let mut variables = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter();
        Ok(Self {
            endpoint: parse_endpoint(text("HF_ENDPOINT"))?,
            cache,
            token,
            offline: if offline { Some("--offline") } else { variables.find(|name| is_on(name)) },
            symlinks: !is_on("HF_HUB_DISABLE_SYMLINKS"),
            retry: RetryPolicy::default(),
        })
    }
}

fn setting_error(name: &str, why: &str, hint: &str) -> HubError {
    HubError::new(HubErrorKind::Setting, format!("{name}: {why}"), hint)
}

fn parse_endpoint(value: Option<String>) -> Result<String, HubError> {
    let endpoint = value.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
    let endpoint = endpoint.trim().trim_end_matches('/');
    let is_valid = |url: &Url| {
        let has_only_path =
            url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && has_only_path
    };
    if !Url::parse(endpoint).as_ref().is_ok_and(is_valid) {
        let why = "expected a URL that begins with https://, without user or query";
        let hint = "unset it for the public hub, or set it to your mirror";
        return Err(setting_error("HF_ENDPOINT", why, hint));
    }
    Ok(endpoint.to_owned())
}

/// Reads the token file; `None` if it does not exist. An unreadable file is an error, because an
/// error of the hub about a missing token would be misleading.
fn read_token(path: &Path) -> Result<Option<AccessToken>, HubError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(AccessToken::new(&text)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => {
            let why = format!("cannot read the token: {error}");
            let hint = "make the file readable, or set HF_TOKEN";
            Err(setting_error(&path.display().to_string(), &why, hint))
        }
    }
}

/// Replaces a leading `~` with the home folder.
fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn is_true(value: &str) -> bool {
    let mut true_values = ["1", "on", "yes", "true"].iter();
    true_values.any(|text| value.eq_ignore_ascii_case(text))
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
    fn cache_folder_matches_python_tools() {
        let cache = |variables: &[(&str, &str)]| read(variables, false).unwrap().cache;
        let home = ("HOME", "/h");
        assert_eq!(cache(&[home]), Path::new("/h/.cache/huggingface/hub"));
        assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/c")]), Path::new("/c/huggingface/hub"));
        assert_eq!(cache(&[home, ("HF_HOME", "~/hf")]), Path::new("/h/hf/hub"));
        assert_eq!(cache(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/x")]), Path::new("/x"));
        assert!(read(&[], false).is_err());
    }

    #[test]
    fn token_variable_precedes_token_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "hf_file\n").unwrap();
        let home = ("HF_HOME", dir.path().to_str().unwrap());
        let token = |more: &[(&str, &str)]| read(&[&[home], more].concat(), false).unwrap().token;
        assert_eq!(token(&[]), AccessToken::new("hf_file"));
        assert_eq!(token(&[("HF_TOKEN", " hf_named ")]), AccessToken::new("hf_named"));
        assert_eq!(token(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
        assert_eq!(format!("{:?}", token(&[])), "Some(AccessToken(…))");
        let error = read(&[home, ("HF_TOKEN", "hf_a\u{e9}b")], false).unwrap_err();
        assert!(!error.to_string().contains("hf_a\u{e9}"), "{error}");
    }

    #[test]
    fn offline_names_its_flag_or_variable() {
        let offline = |pairs: &[(&str, &str)], flag| {
            read(&[&[("HOME", "/h")], pairs].concat(), flag).unwrap().offline
        };
        assert_eq!(offline(&[], false), None);
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "0")], false), None);
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "YES")], false), Some("HF_HUB_OFFLINE"));
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "1")], true), Some("--offline"));
    }

    #[test]
    fn endpoint_must_be_a_url() {
        let with_endpoint = |value: &str| read(&[("HOME", "/h"), ("HF_ENDPOINT", value)], false);
        assert_eq!(
            with_endpoint("https://mirror.example/hub/").unwrap().endpoint,
            "https://mirror.example/hub"
        );
        assert_eq!(with_endpoint("").unwrap().endpoint, DEFAULT_ENDPOINT);
        for bad in ["mirror.example", "ftp://x", "https://", "https://user@x"] {
            assert!(with_endpoint(bad).is_err(), "{bad}");
        }
    }
}

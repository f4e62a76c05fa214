//! Settings of the hub, from the environment variables of the Python tools (reference:
//! `huggingface_hub`, `constants.py`). `hf-hub` reads only some of them, so this module reads
//! and checks all of them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::HubArgs;
use super::error::{HubError, HubErrorKind};
use crate::support::files::regular_file;
use crate::support::network::access_token::{AccessToken, HUB_TOKEN_VARIABLE};
use crate::support::network::service_url::{ServiceUrl, UrlRules};

/// Default of `HF_ENDPOINT`.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// Location of the hub and of the cache, access token and retry policy.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// URL of the hub.
    pub endpoint: ServiceUrl,
    /// True if plain http to other hosts is accepted.
    pub allow_http: bool,
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
    /// Timeout of a complete response that is no file, such as a list of files.
    pub metadata_timeout: Duration,
    /// Time in which a download must receive at least [`RetryPolicy::MIN_BYTES`].
    pub slow_timeout: Duration,
    /// Maximum number of consecutive attempts with fewer new bytes than [`RetryPolicy::MIN_BYTES`].
    pub attempts: u32,
    /// Pause after the first failed attempt, doubled after each further one.
    pub pause: Duration,
}

impl RetryPolicy {
    /// Bytes that a download must receive in [`RetryPolicy::slow_timeout`].
    pub const MIN_BYTES: u64 = 32 << 10;
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            metadata_timeout: Duration::from_secs(30),
            slow_timeout: Duration::from_mins(1),
            attempts: 4,
            pause: Duration::from_secs(1),
        }
    }
}

impl HubSettings {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    ///
    /// If a variable or the token file is invalid.
    pub fn from_env(flags: HubArgs) -> Result<Self, HubError> {
        Self::read(&|name| std::env::var_os(name), flags)
    }

    /// Reads the settings from the variables that `get` returns.
    ///
    /// # Errors
    ///
    /// If a variable or the token file is invalid.
    pub fn read(get: &dyn Fn(&str) -> Option<OsString>, flags: HubArgs) -> Result<Self, HubError> {
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
        let variable = text(HUB_TOKEN_VARIABLE).or_else(|| text("HUGGING_FACE_HUB_TOKEN"));
        let token = match variable.as_deref().and_then(AccessToken::new) {
            Some(token) => Some(token),
            None if is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN") => None,
            None => token_file.as_deref().map(read_token).transpose()?.flatten(),
        };
        if token.as_ref().is_some_and(|token| !token.is_word()) {
            let why = "the token contains a space or a character that is not ASCII";
            return Err(setting_error(
                HUB_TOKEN_VARIABLE,
                why,
                "copy it again; it is one word that begins with hf_",
            ));
        }
        let mut variables = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter();
        Ok(Self {
            endpoint: parse_endpoint(text("HF_ENDPOINT"), flags.allow_http)?,
            allow_http: flags.allow_http,
            cache,
            token,
            offline: if flags.offline {
                Some("--offline")
            } else {
                variables.find(|name| is_on(name))
            },
            symlinks: !is_on("HF_HUB_DISABLE_SYMLINKS"),
            retry: RetryPolicy::default(),
        })
    }
}

fn setting_error(name: &str, why: &str, hint: &str) -> HubError {
    HubError::new(HubErrorKind::Setting, format!("{name}: {why}"), hint)
}

fn parse_endpoint(value: Option<String>, allow_http: bool) -> Result<ServiceUrl, HubError> {
    let endpoint = value.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
    ServiceUrl::parse(&endpoint, UrlRules { key_variable: HUB_TOKEN_VARIABLE, allow_http })
        .map_err(|error| setting_error("HF_ENDPOINT", &error.reason, &error.hint))
}

/// Reads the token file; `None` if it does not exist. An unreadable file is an error, because an
/// error of the hub about a missing token would be misleading.
fn read_token(path: &Path) -> Result<Option<AccessToken>, HubError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match regular_file::read_to_string(path) {
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
        HubSettings::read(&found, HubArgs { offline, allow_http: false })
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
    fn endpoint_must_be_a_url_without_credentials() {
        let with_endpoint = |value: &str| read(&[("HOME", "/h"), ("HF_ENDPOINT", value)], false);
        let endpoint = |value: &str| with_endpoint(value).unwrap().endpoint.as_str().to_owned();
        assert_eq!(endpoint("https://mirror.example/hub/"), "https://mirror.example/hub");
        assert_eq!(endpoint(""), DEFAULT_ENDPOINT);
        for bad in [
            "mirror.example",
            "ftp://x",
            "https://",
            "https://hf_key@x",
            "https://:hf_key@x",
            "https://x?token=hf_key",
            "http://mirror.example",
        ] {
            let error = with_endpoint(bad).unwrap_err().to_string();
            assert!(error.starts_with("HF_ENDPOINT: ") && error.contains("hint: "), "{error}");
            assert!(!error.contains("hf_key"), "{error}");
        }
    }
}

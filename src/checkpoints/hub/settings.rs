//! The environment variables of the Python tools (reference: `huggingface_hub/constants.py`).

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::HubError;

/// The hub that is asked where `HF_ENDPOINT` names no other.
const ENDPOINT: &str = "https://huggingface.co";

/// Where the hub and the cache are, and how they may be used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's address, without a `/` at its end.
    pub endpoint: String,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// Who asks.
    pub token: Option<Token>,
    /// What forbids to ask the hub: the flag or the variable.
    pub offline: Option<&'static str>,
    /// False where snapshots must be copies instead of links.
    pub symlinks: bool,
    /// How long to wait and how often to try.
    pub patience: Patience,
}

/// How long to wait and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest silence within an answer.
    pub silence: Duration,
    /// Tries without a new byte before giving up.
    pub tries: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            tries: 4,
            pause: Duration::from_secs(1),
        }
    }
}

/// A secret that names its owner to the hub. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token as it stands in a variable or file; `None` where there is nothing in it.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The value of the header that carries it.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    fn is_sendable(&self) -> bool {
        self.0.bytes().all(|b| b.is_ascii_graphic())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Settings {
    /// The settings of the process. `offline` is the flag.
    pub fn from_env(offline: bool) -> Result<Self, HubError> {
        Self::read(&|name| std::env::var_os(name), offline)
    }

    /// Settings from variables.
    pub fn read(get: &dyn Fn(&str) -> Option<OsString>, offline: bool) -> Result<Self, HubError> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).map(|v| v.to_string_lossy().into_owned());
        let on = |name: &str| text(name).is_some_and(|value| is_true(&value));
        let home = set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(PathBuf::from);
        let path = |name: &str| set(name).map(|value| expand(Path::new(&value), home.as_deref()));
        let default = || {
            let caches = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
            caches.map(|caches| caches.join("huggingface"))
        };
        let hf_home = path("HF_HOME").or_else(default);
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(hf_home.as_ref()?.join("hub")))
            .ok_or_else(|| HubError::Setting {
                name: "HF_HOME".to_owned(),
                why: "neither it nor HOME is set, so there is no place for downloads".to_owned(),
                hint: "set HF_HOME to a folder",
            })?;
        let token_file = path("HF_TOKEN_PATH").or_else(|| Some(hf_home.as_ref()?.join("token")));
        let named = text("HF_TOKEN").or_else(|| text("HUGGING_FACE_HUB_TOKEN"));
        let token = match named.as_deref().and_then(Token::new) {
            Some(token) => Some(token),
            None if on("HF_HUB_DISABLE_IMPLICIT_TOKEN") => None,
            None => token_file.as_deref().map(read_token).transpose()?.flatten(),
        };
        if token.as_ref().is_some_and(|token| !token.is_sendable()) {
            return Err(HubError::Setting {
                name: "HF_TOKEN".to_owned(),
                why: "the token holds a blank or a character that is not ASCII".to_owned(),
                hint: "copy it again; it is one word that begins with hf_",
            });
        }
        let variable = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
            .into_iter()
            .find(|name| on(name));
        Ok(Self {
            endpoint: endpoint(text("HF_ENDPOINT"))?,
            cache,
            token,
            offline: if offline { Some("--offline") } else { variable },
            symlinks: !on("HF_HUB_DISABLE_SYMLINKS"),
            patience: Patience::default(),
        })
    }
}

fn endpoint(named: Option<String>) -> Result<String, HubError> {
    let endpoint = named.unwrap_or_else(|| ENDPOINT.to_owned());
    let endpoint = endpoint.trim().trim_end_matches('/');
    let host = endpoint
        .strip_prefix("https://")
        .or_else(|| endpoint.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.contains(['@', '?', '#', ' '])) {
        return Err(HubError::Setting {
            name: "HF_ENDPOINT".to_owned(),
            why: "expected an address that begins with https:// and holds no user or query"
                .to_owned(),
            hint: "unset it for the public hub, or set it to your mirror",
        });
    }
    Ok(endpoint.to_owned())
}

/// The token in a file. One that may not be read is an error: to go on without it would end in a
/// refusal that nobody understands.
fn read_token(path: &Path) -> Result<Option<Token>, HubError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Token::new(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(HubError::Setting {
            name: path.display().to_string(),
            why: format!("the token cannot be read: {error}"),
            hint: "make the file readable, or set HF_TOKEN",
        }),
    }
}

/// A `~` at the beginning is the home folder.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], offline: bool) -> Result<Settings, HubError> {
        let found = |name: &str| {
            let pair = variables.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(pair.1))
        };
        Settings::read(&found, offline)
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
        assert_eq!(token(&[]), Token::new("hf_file"));
        assert_eq!(token(&[("HF_TOKEN", " hf_named ")]), Token::new("hf_named"));
        assert_eq!(token(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
        assert_eq!(format!("{:?}", token(&[])), "Some(Token(…))");
        let error = read(&[home, ("HF_TOKEN", "hf_a\u{e9}b")], false).unwrap_err();
        assert!(!error.to_string().contains("hf_a\u{e9}"), "{error}");
    }

    #[test]
    fn offline_says_who_wants_it() {
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
    fn an_endpoint_is_an_address() {
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

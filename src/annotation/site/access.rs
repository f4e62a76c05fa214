//! The links of raters and of the administrator: one random token each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Error, Result};
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};

use crate::support::digest::Digest;
use crate::support::files::atomic_file;

/// File with the tokens in the output folder.
const LINKS_FILE: &str = "links.json";
/// Bytes of a token: 128 random bits.
const TOKEN_BYTES: usize = 16;

/// Who visits the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visitor {
    /// The administrator.
    Administrator,
    /// A rater, by index.
    Rater(usize),
}

/// The tokens of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLinks {
    administrator: String,
    raters: BTreeMap<String, String>,
    /// Names of the raters, in the order of the study.
    #[serde(skip)]
    names: Vec<String>,
}

impl AccessLinks {
    /// Reads the tokens of a folder, and creates missing ones. Only the owner can read the file.
    ///
    /// # Errors
    /// If the file cannot be read or written, or there are no random numbers.
    pub fn open(folder: &Path, names: &[&str]) -> Result<Self> {
        let path = folder.join(LINKS_FILE);
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let known = match std::fs::read(&path) {
            Ok(text) => Some(Self::parse(&text).with_context(|| {
                format!(
                    "{}: not the file with the links of a study\n\
                     hint: delete it to create new links; the old ones end",
                    path.display()
                )
            })?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let mut links = match &known {
            Some(known) => known.clone(),
            None => Self { administrator: random_token()?, raters: BTreeMap::new(), names: vec![] },
        };
        for name in &names {
            if !links.raters.contains_key(name) {
                links.raters.insert(name.clone(), random_token()?);
            }
        }
        if known.as_ref() != Some(&links) {
            links.write(&path, known.is_none())?;
        }
        Ok(Self { names, ..links })
    }

    fn parse(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).map_err(Error::from)
    }

    /// Writes the file. Only the owner can read it.
    fn write(&self, path: &Path, is_new: bool) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).context("cannot write the links")?;
        if !is_new {
            // The new file has the permissions of the old one.
            return atomic_file::write_atomic(path, &text);
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(path).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the visitor with a token. The comparison takes the same time for every token.
    pub fn visitor(&self, token: &str) -> Option<Visitor> {
        let given = Digest::sha256(token.as_bytes());
        let is_token = |known: &str| Digest::sha256(known.as_bytes()) == given;
        if is_token(&self.administrator) {
            return Some(Visitor::Administrator);
        }
        let is_of_rater =
            |name: &String| self.raters.get(name).is_some_and(|token| is_token(token));
        self.names.iter().position(is_of_rater).map(Visitor::Rater)
    }

    /// Returns the name of the cookie. Each study has its own, because a browser sends a cookie to all ports
    /// of a host.
    pub fn cookie_name(&self) -> String {
        format!("acem3-{}", Digest::sha256(self.administrator.as_bytes()).short_hex())
    }

    /// Returns the path of the administrator's link.
    pub fn administrator_path(&self) -> String {
        entry_path(&self.administrator)
    }

    /// Returns each rater with the path of the link.
    pub fn rater_paths(&self) -> impl Iterator<Item = (&str, String)> {
        self.names
            .iter()
            .filter_map(|name| Some((name.as_str(), entry_path(self.raters.get(name)?))))
    }
}

fn entry_path(token: &str) -> String {
    format!("/enter/{token}")
}

fn random_token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    OsRng.try_fill_bytes(&mut bytes).context("the system gives no random numbers")?;
    let mut token = String::new();
    for byte in bytes {
        write!(token, "{byte:02x}").context("cannot write a token")?;
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_kept_and_belong_to_visitors() {
        let dir = tempfile::tempdir().unwrap();
        let links = AccessLinks::open(dir.path(), &["b", "a"]).unwrap();
        assert_eq!(AccessLinks::open(dir.path(), &["b", "a"]).unwrap(), links);
        let token = |path: String| path.rsplit('/').next().unwrap().to_owned();
        let tokens: Vec<String> = links.rater_paths().map(|(_, path)| token(path)).collect();
        assert!(tokens.iter().all(|token| token.len() == 32) && tokens[0] != tokens[1]);
        assert_eq!(links.visitor(&tokens[0]), Some(Visitor::Rater(0)));
        assert_eq!(links.visitor(&tokens[1]), Some(Visitor::Rater(1)));
        // A rater who is added gets a link; the others keep theirs.
        let added = AccessLinks::open(dir.path(), &["b", "a", "c"]).unwrap();
        assert_eq!(added.rater_paths().count(), 3);
        assert!(links.rater_paths().all(|path| added.rater_paths().any(|other| other == path)));
        assert_eq!(added.cookie_name(), links.cookie_name());
        let administrator = token(links.administrator_path());
        assert_eq!(links.visitor(&administrator), Some(Visitor::Administrator));
        for guess in ["", "b", &tokens[0][1..], &tokens[0].to_uppercase()] {
            let is_same = guess == tokens[0];
            assert_eq!(links.visitor(guess).is_some(), is_same, "{guess}");
        }
        #[cfg(unix)]
        {
            let metadata = std::fs::metadata(dir.path().join(LINKS_FILE)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

//! The weight files of the members in `panel.toml`.

use anyhow::{Context, Result, bail};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The weight files (safetensors) of each member, by its name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFiles(Vec<(String, Vec<String>)>);

impl MemberFiles {
    /// Creates the files of members.
    pub fn new(names: [&str; 4], files: impl Fn(&str) -> Vec<String>) -> Self {
        Self(names.map(|name| (name.to_owned(), files(name))).into())
    }

    /// Returns the files of a member; none for an unknown name.
    pub fn of(&self, name: &str) -> &[String] {
        let found = self.0.iter().find(|(member, _)| member == name);
        found.map_or(&[], |(_, files)| files)
    }

    /// Checks that these are the members.
    ///
    /// # Errors
    ///
    /// A member is missing or unknown.
    pub(super) fn check(&self, names: [&str; 4]) -> Result<()> {
        if let Some((unknown, _)) = self.0.iter().find(|(name, _)| !names.contains(&name.as_str()))
        {
            bail!("unknown field `{unknown}`, expected one of {}", names.join(", "));
        }
        let is_listed = |name: &&str| self.0.iter().any(|(member, _)| member == name);
        let missing = names.iter().find(|name| !is_listed(name));
        missing.map_or(Ok(()), |name| None.with_context(|| format!("missing field `{name}`")))
    }
}

impl Serialize for MemberFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, files) in &self.0 {
            map.serialize_entry(name, files)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for MemberFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = MemberFiles;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("lists of files by the name of the member")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberFiles, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(MemberFiles(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unknown_members_are_named() {
        let names = ["a", "b", "c", "conclusion"];
        let files = MemberFiles::new(names, |name| vec![format!("{name}.safetensors")]);
        assert!(files.check(names).is_ok());
        assert_eq!(files.of("b"), ["b.safetensors"]);
        let text = toml::to_string(&files).unwrap();
        assert!(text.starts_with("a = "), "{text}");
        assert_eq!(toml::from_str::<MemberFiles>(&text).unwrap(), files);
        let error = |text: &str| {
            let files: MemberFiles = toml::from_str(text).unwrap();
            files.check(names).unwrap_err().to_string()
        };
        assert_eq!(error("a = []"), "missing field `b`");
        assert!(error("d = []").starts_with("unknown field `d`"));
    }
}

//! The files of a commit, which never change: as the hub lists them, and as the cache keeps them
//! (reference: `huggingface_hub/_tree_cache.py`). By the list it is known offline whether a
//! snapshot is whole.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checksum::Checksum;
use super::id::is_hex;

/// The version of the cached form.
const VERSION: u32 = 1;

/// The files of a commit by their paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tree {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    size: u64,
    blob_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    xet_hash: Option<String>,
}

impl Entry {
    /// Its size in bytes and its hash, where the listing states them.
    pub(super) fn content(&self) -> Option<(u64, Checksum)> {
        let hash = self.lfs_sha256.as_deref().unwrap_or(&self.blob_id);
        Some((self.lfs_size.unwrap_or(self.size), Checksum::parse(hash)?))
    }
}

impl Tree {
    /// The `siblings` of the hub's answer about a revision. A name that is not a path below the
    /// repository is an error.
    pub(super) fn of_answer(answer: &Value) -> Result<Self, String> {
        let siblings = answer.get("siblings").and_then(Value::as_array);
        let siblings = siblings.ok_or("its answer has no list of files (`siblings`)")?;
        let mut files = BTreeMap::new();
        for sibling in siblings {
            let name = sibling.get("rfilename").and_then(Value::as_str);
            let name = name.ok_or("a file in its answer has no name (`rfilename`)")?;
            if !is_inside(name) {
                return Err(format!(
                    "it lists a file outside of the repository: `{name}`"
                ));
            }
            files.insert(name.to_owned(), entry(sibling));
        }
        Ok(Self {
            format_version: VERSION,
            files,
        })
    }

    /// A tree of the cache; `None` where it is of another version or damaged.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let tree: Self = serde_json::from_slice(text).ok()?;
        let sound = tree.format_version == VERSION && tree.files.keys().all(|name| is_inside(name));
        sound.then_some(tree)
    }

    /// The form of the cache; `None` where the hub did not state every file's size and hash.
    pub(super) fn cached(&self) -> Option<String> {
        let known = self.files.values().all(|file| is_hash(&file.blob_id));
        known
            .then(|| serde_json::to_string_pretty(self).ok())
            .flatten()
    }

    /// The paths of all files.
    pub(super) fn names(&self) -> Vec<&str> {
        self.files.keys().map(String::as_str).collect()
    }

    /// What is known of a file.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.files.get(name)
    }
}

fn entry(sibling: &Value) -> Entry {
    let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let lfs = sibling.get("lfs").filter(|lfs| lfs.is_object());
    Entry {
        size: sibling.get("size").and_then(Value::as_u64).unwrap_or(0),
        blob_id: text(sibling, "blobId").unwrap_or_default(),
        lfs_sha256: lfs.and_then(|lfs| text(lfs, "sha256")),
        lfs_size: lfs.and_then(|lfs| lfs.get("size")?.as_u64()),
        xet_hash: None,
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 40 && is_hex(text)
}

/// Whether a name stays below the folder it is joined to, on every system.
fn is_inside(name: &str) -> bool {
    let plain = |part: Component| matches!(part, Component::Normal(_));
    !name.is_empty()
        && !name.contains(['\\', ':', '\0'])
        && !name.split('/').any(|part| part.is_empty() || part == ".")
        && Path::new(name).components().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listing_becomes_the_cached_form_of_the_reference() {
        let (blob, sha) = ("a".repeat(40), "b".repeat(64));
        let answer = json!({"siblings": [
            {"rfilename": "config.json", "size": 7, "blobId": blob},
            {"rfilename": "w/model.bin", "size": 9, "blobId": blob,
             "lfs": {"sha256": sha, "size": 9, "pointerSize": 3}},
        ]});
        let tree = Tree::of_answer(&answer).unwrap();
        assert_eq!(tree.names(), ["config.json", "w/model.bin"]);
        let text = tree.cached().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            json!({"format_version": 1, "files": {
                "config.json": {"size": 7, "blob_id": blob},
                "w/model.bin": {"size": 9, "blob_id": blob, "lfs_sha256": sha, "lfs_size": 9},
            }})
        );
        assert_eq!(Tree::parse(text.as_bytes()), Some(tree.clone()));
        let content = tree.get("w/model.bin").unwrap().content();
        assert_eq!(content, Some((9, Checksum::Sha256(sha))));
        assert_eq!(
            Tree::parse(&text.replace(": 1,", ": 2,").into_bytes()),
            None
        );
    }

    #[test]
    fn names_stay_inside() {
        for name in [
            "../x",
            "/x",
            "a/../../x",
            "a//b",
            "",
            "./a",
            "C:\\x",
            "a\\..\\b",
            "a/",
        ] {
            let answer = json!({"siblings": [{"rfilename": name}]});
            let error = Tree::of_answer(&answer).unwrap_err();
            assert!(error.contains("outside"), "{name}: {error}");
        }
        let bare = json!({"siblings": [{"rfilename": "a"}]});
        assert_eq!(Tree::of_answer(&bare).unwrap().cached(), None);
        assert!(Tree::of_answer(&json!({"error": "x"})).is_err());
    }
}

//! The digest of a source: a hash of its cases and input problems as they are read.
//!
//! It depends on the content and on the options that change it (answers, split, language), not on
//! where the files are. Images are not read; records have their hashes.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::case::{Case, ImageSource};
use super::source_options::CaseResult;
use crate::data::images::relative_path;
use crate::support::digest::Digest;

/// Hashes the cases and problems of a source, in their order.
#[derive(Clone, Debug)]
pub struct CaseHasher {
    root: PathBuf,
    hasher: Sha256,
    cases: u64,
}

impl CaseHasher {
    /// Creates the hasher of a source. Image names are relative to the folder `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root, hasher: Sha256::new(), cases: 0 }
    }

    /// Adds the next case or problem.
    pub fn add(&mut self, entry: &CaseResult) {
        let bytes = match entry {
            Ok(case) => {
                self.cases += 1;
                case_bytes(case, &self.root)
            }
            Err(problem) => {
                self.cases += u64::from(problem.affects_whole_case());
                serde_json::to_vec(&(problem.line, &problem.id, problem.reason))
            }
        };
        // Numbers in `meta` that JSON cannot hold do not occur: the fields were read from JSON.
        let bytes = bytes.unwrap_or_default();
        self.hasher.update((bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Returns the number of cases so far, unreadable ones included.
    pub fn cases(&self) -> u64 {
        self.cases
    }

    /// Returns the digest of the cases and problems so far.
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(self.hasher.clone().finalize().into())
    }
}

/// Serializes everything about a case that a record can show, without the bytes of its image.
fn case_bytes(case: &Case, root: &Path) -> serde_json::Result<Vec<u8>> {
    let image = case.image.as_ref().map(|image| match image {
        ImageSource::File(path) => relative_path(path, root),
        ImageSource::Bytes { name, .. } => name.clone(),
    });
    serde_json::to_vec(&(
        (case.line, &case.id, image, &case.question, &case.responses),
        (&case.reference, &case.labels, &case.meta, &case.extra),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::{InputProblem, Response};

    fn case(question: &str) -> Case {
        Case {
            id: "1".into(),
            image: Some(ImageSource::File("/a/images/x.png".into())),
            question: question.into(),
            responses: vec![Response { model: "m".into(), text: "t".into() }],
            reference: None,
            labels: None,
            meta: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            line: 1,
        }
    }

    #[test]
    fn digest_depends_on_the_content_and_not_on_the_folder() {
        let digest = |root: &str, entries: &[CaseResult]| {
            let mut hasher = CaseHasher::new(root.into());
            for entry in entries {
                hasher.add(entry);
            }
            (hasher.cases(), hasher.digest())
        };
        let moved = Case { image: Some(ImageSource::File("/b/images/x.png".into())), ..case("q") };
        let first = digest("/a", &[Ok(case("q"))]);
        assert_eq!(first, digest("/b", &[Ok(moved)]));
        assert_ne!(first, digest("/a", &[Ok(case("r"))]));
        let problem = InputProblem::parse_error(Path::new("c.jsonl"), 2, None, "malformed");
        assert_eq!(digest("/a", &[Ok(case("q")), Err(problem)]).0, 2);
    }
}

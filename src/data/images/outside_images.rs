//! Images outside of the folder that the user named: by an absolute path, by `..` or by a symbolic
//! link.
//!
//! Cases of another person may name any file of this machine. Judging such an image is harmless,
//! but a page or a server that shows it to others is not.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::text::format_count;

/// Reason for an image that is not passed on.
pub const OUTSIDE_REASON: &str = "outside of the folder of the cases";

/// Treatment of images outside of a folder. Clones share their counts.
#[derive(Clone, Debug)]
pub struct OutsideImages(Treatment);

#[derive(Clone, Debug)]
enum Treatment {
    Accept,
    Count(Arc<Mutex<OutsideCount>>),
    Reject,
}

/// Distinct images outside of the folder.
#[derive(Debug, Default)]
struct OutsideCount {
    hasher: RandomState,
    paths: HashSet<u64>,
    first: String,
}

impl OutsideImages {
    /// Accepts all images.
    pub fn accepted() -> Self {
        Self(Treatment::Accept)
    }

    /// Accepts all images and counts those outside.
    pub fn counted() -> Self {
        Self(Treatment::Count(Arc::default()))
    }

    /// Rejects images outside.
    pub fn rejected() -> Self {
        Self(Treatment::Reject)
    }

    /// Checks an image before it is read.
    ///
    /// # Errors
    ///
    /// The image is outside, and such images are rejected.
    pub fn check(&self, path: &Path, root: &Path, name: &str) -> Result<(), String> {
        match &self.0 {
            Treatment::Count(count) => {
                if is_outside(path, root) {
                    let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
                    let hash = count.hasher.hash_one(path);
                    if count.paths.is_empty() {
                        name.clone_into(&mut count.first);
                    }
                    count.paths.insert(hash);
                }
                Ok(())
            }
            Treatment::Reject if is_outside(path, root) => Err(format!(
                "{OUTSIDE_REASON}\nhint: pass --allow-outside if others may receive this image"
            )),
            Treatment::Accept | Treatment::Reject => Ok(()),
        }
    }

    /// Describes the counted images; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let Treatment::Count(count) = &self.0 else {
            return None;
        };
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        (!count.paths.is_empty()).then(|| {
            format!(
                "{} {OUTSIDE_REASON} (first: {})\n\
                 hint: reports leave them out, unless you pass --allow-outside to `acem3 report`",
                format_count(count.paths.len() as u64, "image"),
                count.first
            )
        })
    }
}

/// Returns true if an existing file is not in a folder or its subfolders. Follows symbolic links.
pub fn is_outside(path: &Path, root: &Path) -> bool {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(path), Ok(root)) => !path.starts_with(root),
        // The reader reports a file that does not exist.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn images_outside_are_counted_or_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cases");
        fs::create_dir_all(root.join("images")).unwrap();
        let [inside, outside] = [root.join("images/a.png"), dir.path().join("b.png")];
        fs::write(&inside, "a").unwrap();
        fs::write(&outside, "b").unwrap();
        let by_dots = root.join("images/../../b.png");
        let back = root.join("../cases/images/a.png");
        let (counted, rejected) = (OutsideImages::counted(), OutsideImages::rejected());
        for (path, is_out) in [(&inside, false), (&back, false), (&outside, true), (&by_dots, true)]
        {
            assert_eq!(is_outside(path, &root), is_out, "{}", path.display());
            assert_eq!(rejected.check(path, &root, "x").is_err(), is_out);
            assert!(counted.clone().check(path, &root, "b.png").is_ok());
        }
        assert!(!is_outside(&root.join("missing.png"), &root));
        let note = counted.note().unwrap();
        assert!(note.starts_with("2 images outside of the folder of the cases (first: b.png)"));
        assert_eq!(OutsideImages::counted().note(), None);
        #[cfg(unix)]
        {
            let link = root.join("images/link.png");
            std::os::unix::fs::symlink(&outside, &link).unwrap();
            assert!(is_outside(&link, &root));
        }
    }
}

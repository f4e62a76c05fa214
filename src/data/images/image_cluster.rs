//! Bootstrap clusters: cases with the same image are resampled together.

use std::fmt;

use crate::support::digest::Digest;

/// Cluster of a case. `Display` prints the image hash, the image name or the case id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageCluster<'a> {
    /// Cases whose image file has this hash.
    Image(Digest),
    /// Cases whose image has this name and could not be read.
    UnreadImage(&'a str),
    /// A case without an image.
    Case(&'a str),
}

impl<'a> ImageCluster<'a> {
    /// Returns the cluster of an image; `sha256` is `None` if the image could not be read.
    pub fn from_image(name: &'a str, sha256: Option<Digest>) -> Self {
        sha256.map_or(Self::UnreadImage(name), Self::Image)
    }

    /// Returns the name of the cluster, with the hash shortened to 16 digits.
    pub fn short_name(&self) -> String {
        match self {
            Self::Image(digest) => digest.short_hex(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for ImageCluster<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(digest) => digest.fmt(f),
            Self::UnreadImage(name) => f.write_str(name),
            Self::Case(id) => write!(f, "case {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_is_identified_by_image_hash() {
        let digest = Digest::sha256(b"pixels");
        let one = ImageCluster::from_image("a.png", Some(digest));
        let two = ImageCluster::from_image("b.png", Some(digest));
        assert_eq!(one, two);
        assert_eq!(one.to_string(), digest.to_string());
        assert_eq!(one.short_name(), digest.short_hex());
        let unread = ImageCluster::from_image("a.png", None);
        assert_ne!(unread, ImageCluster::Case("a.png"));
        assert_eq!(unread.short_name(), "a.png");
        assert_eq!(ImageCluster::Case("c1").to_string(), "case c1");
    }
}

//! The key of a verdict: a hash of everything that can move it.
//!
//! Two runs that would give the same verdict have the same key, and a changed word, pixel, weight
//! or setting gives another. Names, labels and ids do not move a verdict and are not in it.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

use crate::support::digest::Digest;

/// Everything about a judge that can move its verdicts, by name.
pub type Provenance = BTreeMap<String, String>;

/// The digest of a judge: of its provenance, entry by entry.
pub fn judge_digest(provenance: &Provenance) -> Digest {
    let mut fields = Fields::new("acem3 judge 1");
    for (name, value) in provenance {
        fields.add(name.as_bytes());
        fields.add(value.as_bytes());
    }
    fields.digest()
}

/// The key of the verdict of a judge on a pair of responses.
pub fn pair_key(
    judge: &Digest,
    question: &str,
    responses: [&str; 2],
    image: Option<&Digest>,
) -> Digest {
    let mut fields = Fields::new("acem3 pair 1");
    fields.add(judge.bytes());
    fields.add(question.as_bytes());
    for response in responses {
        fields.add(response.as_bytes());
    }
    // No image and an empty image differ.
    fields.add(image.map_or(&[][..], |digest| digest.bytes()));
    fields.digest()
}

/// A hash over fields, each led by its length, so that no two lists of fields run together.
struct Fields(Sha256);

impl Fields {
    fn new(domain: &str) -> Self {
        let mut fields = Self(Sha256::new());
        fields.add(domain.as_bytes());
        fields
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn digest(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_moves_a_verdict_moves_the_key() {
        let judge = judge_digest(&Provenance::from([("panel".to_owned(), "a".to_owned())]));
        let other = judge_digest(&Provenance::from([("panel".to_owned(), "b".to_owned())]));
        let image = Digest::of(b"pixels");
        let keys = [
            pair_key(&judge, "q", ["a", "b"], Some(&image)),
            pair_key(&other, "q", ["a", "b"], Some(&image)),
            pair_key(&judge, "qa", ["", "b"], Some(&image)),
            pair_key(&judge, "q", ["b", "a"], Some(&image)),
            pair_key(&judge, "q", ["a", "b"], None),
            pair_key(&judge, "q", ["a", "b"], Some(&Digest::of(b"other"))),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], pair_key(&judge, "q", ["a", "b"], Some(&image)));
    }
}

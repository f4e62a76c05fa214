//! Keys of verdicts: hashes of everything that can change a verdict.
//!
//! Equal inputs have equal keys. A changed word, pixel, weight or setting changes the key. Model
//! names, labels and ids cannot change a verdict, so they are not part of it.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

use crate::support::digest::Digest;

/// Everything about a judge that can change its verdicts, by name.
pub type Provenance = BTreeMap<String, String>;

/// Returns the digest of a judge, computed from the entries of its provenance.
pub fn judge_digest(provenance: &Provenance) -> Digest {
    let mut fields = KeyHasher::new("acem3 judge 1");
    for (name, value) in provenance {
        fields.add(name.as_bytes());
        fields.add(value.as_bytes());
    }
    fields.digest()
}

/// Returns the key of the verdict of a judge on a pair of responses.
pub fn pair_key(
    judge: &Digest,
    question: &str,
    responses: [&str; 2],
    image: Option<&Digest>,
) -> Digest {
    let mut fields = KeyHasher::new("acem3 pair 1");
    fields.add(judge.as_bytes());
    fields.add(question.as_bytes());
    for response in responses {
        fields.add(response.as_bytes());
    }
    // A missing image hashes as an empty field; the digest of an image is never empty.
    fields.add(image.map_or(&[][..], |digest| digest.as_bytes()));
    fields.digest()
}

/// Hashes length-prefixed fields, so that different lists of fields never hash the same bytes.
struct KeyHasher(Sha256);

impl KeyHasher {
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
    fn every_input_of_a_verdict_changes_the_key() {
        let judge = judge_digest(&Provenance::from([("panel".to_owned(), "a".to_owned())]));
        let other = judge_digest(&Provenance::from([("panel".to_owned(), "b".to_owned())]));
        let image = Digest::sha256(b"pixels");
        let keys = [
            pair_key(&judge, "q", ["a", "b"], Some(&image)),
            pair_key(&other, "q", ["a", "b"], Some(&image)),
            pair_key(&judge, "qa", ["", "b"], Some(&image)),
            pair_key(&judge, "q", ["b", "a"], Some(&image)),
            pair_key(&judge, "q", ["a", "b"], None),
            pair_key(&judge, "q", ["a", "b"], Some(&Digest::sha256(b"other"))),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], pair_key(&judge, "q", ["a", "b"], Some(&image)));
    }
}

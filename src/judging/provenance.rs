//! Keys of verdicts: hashes of everything that can change a verdict.
//!
//! Equal inputs have equal keys. A changed word, pixel, weight or setting changes the key. Model
//! names, labels and ids cannot change a verdict, so they are not part of it.

use std::collections::BTreeMap;

use acem3_experts::prompt::Form;
use sha2::{Digest as _, Sha256};

use crate::support::digest::Digest;

/// Everything about a judge that can change its verdicts, by name.
pub type Provenance = BTreeMap<String, String>;

/// Adds the form of judging. Pairs without a reference answer, the default, add nothing.
pub fn add_form(provenance: &mut Provenance, form: Form, shows_reference: bool) {
    if !form.is_pair() {
        provenance.insert("form".to_owned(), form.name().to_owned());
    }
    if shows_reference {
        provenance.insert("reference".to_owned(), "shown".to_owned());
    }
}

/// Returns the digest of a judge, computed from the entries of its provenance.
pub fn judge_digest(provenance: &Provenance) -> Digest {
    let mut fields = KeyHasher::new("acem3 judge 1");
    for (name, value) in provenance {
        fields.add(name.as_bytes());
        fields.add(value.as_bytes());
    }
    fields.digest()
}

/// What a judge sees of a case.
#[derive(Clone, Debug)]
pub struct KeyInput<'a> {
    /// The question.
    pub question: &'a str,
    /// The responses to judge.
    pub responses: &'a [&'a str],
    /// The reference answer, if the judge sees it.
    pub reference: Option<&'a str>,
    /// SHA-256 of the image, if there is one.
    pub image: Option<&'a Digest>,
}

/// Returns the key of the verdict of a judge on these responses.
pub fn verdict_key(judge: &Digest, input: &KeyInput<'_>) -> Digest {
    let is_plain_pair = input.responses.len() == 2 && input.reference.is_none();
    let mut fields =
        KeyHasher::new(if is_plain_pair { "acem3 pair 1" } else { "acem3 responses 1" });
    fields.add(judge.as_bytes());
    fields.add(input.question.as_bytes());
    for response in input.responses {
        fields.add(response.as_bytes());
    }
    // A missing image hashes as an empty field; the digest of an image is never empty.
    fields.add(input.image.map_or(&[][..], |digest| digest.as_bytes()));
    if let Some(reference) = input.reference {
        fields.add(reference.as_bytes());
    }
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
        let key = |judge: &Digest, question, responses: &[&str], image| {
            verdict_key(judge, &KeyInput { question, responses, reference: None, image })
        };
        let with_reference = |responses: &[&str], reference| {
            let image = Some(&image);
            verdict_key(&judge, &KeyInput { question: "q", responses, reference, image })
        };
        let other_image = Digest::sha256(b"other");
        let keys = [
            key(&judge, "q", &["a", "b"], Some(&image)),
            key(&other, "q", &["a", "b"], Some(&image)),
            key(&judge, "qa", &["", "b"], Some(&image)),
            key(&judge, "q", &["b", "a"], Some(&image)),
            key(&judge, "q", &["a", "b"], None),
            key(&judge, "q", &["a", "b"], Some(&other_image)),
            key(&judge, "q", &["a"], Some(&image)),
            with_reference(&["a", "b"], Some("r")),
            with_reference(&["a", "b"], Some("s")),
            with_reference(&["a"], Some("r")),
            with_reference(&["a"], Some("")),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], with_reference(&["a", "b"], None));
    }
}

//! For each pair of an audit, the case that its image or its reference is exchanged with.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::audit_pair::AuditPair;
use crate::analysis::metrics::{is_closed, words};
use crate::data::cases::Case;
use crate::support::digest::Digest;

/// The cases that the image and the reference of a pair are exchanged with.
#[derive(Clone, Debug, Default)]
pub struct OtherCases {
    /// The next case with another image.
    pub image: Option<Arc<Case>>,
    /// The next case with another reference, to a question of the same type if there is one.
    pub reference: Option<Arc<Case>>,
}

/// A reference, for comparison with others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NumberedReference {
    /// True for a closed question; `None` if unknown.
    is_closed: Option<bool>,
    /// Number of the words of the reference; equal words have equal numbers.
    words: usize,
}

impl OtherCases {
    /// Finds the other cases of each pair. `images` has the digest of the image of each pair.
    pub fn find(pairs: &[AuditPair], images: &[Option<Digest>]) -> Vec<Self> {
        let case = |i: usize| pairs.get(i).map(|pair| Arc::clone(&pair.case));
        let other_images = next_others(images);
        let others = other_images.into_iter().zip(other_references(pairs));
        let others = others.map(|(image, reference)| Self {
            image: image.and_then(case),
            reference: reference.and_then(case),
        });
        others.collect()
    }
}

/// Finds, for each pair, the index of a pair with another reference.
fn other_references(pairs: &[AuditPair]) -> Vec<Option<usize>> {
    let references = number_references(pairs);
    let of_type = |is_closed: Option<bool>| -> Vec<Option<usize>> {
        let of_this_type = references
            .iter()
            .map(|reference| Some(reference.filter(|r| r.is_closed == is_closed)?.words))
            .collect::<Vec<_>>();
        next_others(&of_this_type)
    };
    let same_type = [Some(true), Some(false), None].map(of_type);
    let any_type: Vec<Option<usize>> = references.iter().map(|r| Some((*r)?.words)).collect();
    let any_type = next_others(&any_type).into_iter().enumerate();
    let others = any_type.map(|(i, any)| {
        let same = same_type.iter().find_map(|others| others.get(i).copied().flatten());
        same.or(any)
    });
    others.collect()
}

/// Numbers the references of the pairs; `None` for a case without one. References that differ in
/// case, white space or punctuation only are equal.
fn number_references(pairs: &[AuditPair]) -> Vec<Option<NumberedReference>> {
    let mut numbers: HashMap<Vec<String>, usize> = HashMap::new();
    let mut number = |pair: &AuditPair| {
        let text = pair.reference()?;
        let next = numbers.len();
        let words = *numbers.entry(words(text)).or_insert(next);
        Some(NumberedReference { is_closed: is_closed(&pair.case.meta, Some(text)), words })
    };
    pairs.iter().map(&mut number).collect()
}

/// Finds, for each value, the index of the next value that differs from it; after the last one comes
/// the first one.
fn next_others<T: Ord>(values: &[Option<T>]) -> Vec<Option<usize>> {
    let n = values.len();
    let has_several = values.iter().flatten().collect::<BTreeSet<_>>().len() > 1;
    let next_other = |i: usize| {
        let own = values.get(i)?.as_ref()?;
        let differs = |j: &usize| values.get(*j).and_then(Option::as_ref).is_some_and(|v| v != own);
        (1..n).map(|step| (i + step) % n).find(differs)
    };
    (0..n).map(|i| has_several.then(|| next_other(i)).flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_value_that_differs_is_found() {
        let values = [Some(1), None, Some(1), Some(2)];
        assert_eq!(next_others(&values), [Some(3), None, Some(3), Some(0)]);
        assert_eq!(next_others(&[Some(1), None, Some(1)]), [None; 3]);
    }
}

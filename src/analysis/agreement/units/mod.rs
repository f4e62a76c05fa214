//! Units of comparison: labelled pairs, triples and responses, with the values of judge and raters.

pub(crate) mod consensus;
pub(crate) mod join;
pub(crate) mod labelled_units;
pub(crate) mod subgroups;
pub(crate) mod triples;
pub(crate) mod verdict_index;

//! Training data of a round: evaluations, some of which a round replaces.

pub(super) mod completion;
pub(super) mod evaluation_data;
pub(super) mod panel_knowledge;

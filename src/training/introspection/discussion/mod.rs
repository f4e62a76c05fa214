//! Discussion of misjudged pairs (Figure 3 of AutoMedEval): an adviser suggests evaluations, and a
//! reviewer judges them.

pub(crate) mod adviser;
pub(crate) mod chat;
pub(crate) mod discuss;
pub(crate) mod discussion_log;
pub(crate) mod discussion_round;
pub(crate) mod label_check;
pub(crate) mod reviewer;
pub(crate) mod verdict_source;

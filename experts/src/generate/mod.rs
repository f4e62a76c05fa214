//! Format-locked generation: several texts at once, each of a form that always parses.
//!
//! What is fixed is fed, what is free is written greedily up to its stop or budget, a score is chosen
//! among six tokens. Texts of different members, orders and cases share a batch; a text's
//! tokens do not depend on the others in it.

mod engine;
mod panel_decoder;
mod prefixes;
mod sampler;
mod task;
mod writer;

pub use engine::Engine;
pub use prefixes::Prefixes;
pub use task::{ImageTokens, Settings, Task};

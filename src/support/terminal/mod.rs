//! Terminal output: progress, messages, interrupts, exit codes and number formats.

pub mod clock;
pub mod exit;
pub mod interrupt;
pub mod number;
pub mod progress;
pub(crate) mod switch;
pub mod verbosity;
pub mod width;

//! What a person at a terminal sees and does: progress, tables, times, interruptions and endings.

pub mod clock;
pub mod exit;
pub mod interrupt;
pub mod number;
pub mod progress;
pub mod verbosity;
pub mod width;

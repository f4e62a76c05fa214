//! acem3 judges answers about medical images.

pub mod aside;
pub mod cases;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod examples;
pub mod exit;
pub mod folder;
pub mod images;
pub mod interrupt;
pub mod journal;
pub mod judge;
pub mod judgement;
pub mod key;
pub mod manifest;
pub mod pairs;
pub mod phantoms;
pub mod progress;
pub mod record;
pub mod replay;
pub mod run;
pub mod scripted;
pub mod summary;
pub mod tally;
pub mod torn;
pub mod training;

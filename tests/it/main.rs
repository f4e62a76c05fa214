//! Whole-program tests, one binary.

mod data;
mod folder;
mod judge;
mod phantoms;
mod resume;

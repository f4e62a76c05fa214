//! Whole-program tests, one binary.

#[cfg(test)]
mod cases;
mod data;
#[cfg(test)]
mod decoder;
mod examples;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod phantoms;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod vision;

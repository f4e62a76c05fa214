//! The site for human raters: double-blind ratings of the responses of models, from a browser.
//!
//! A [`study`] names the raters and assigns the cases to them. The [`journal`] keeps what they enter. The
//! [`site`] serves the [`pages`], and the [`results`] are what other commands read.

pub mod journal;
mod pages;
pub mod results;
pub mod site;
pub mod study;

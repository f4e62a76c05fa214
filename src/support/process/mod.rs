//! Isolated processes that parse untrusted files.
//!
//! A parser of images or tables can abort the program, or use gigabytes of memory or minutes of
//! time, for a file of a few kilobytes. The program therefore runs these parsers in another process
//! of itself with limits on memory and CPU time ([`isolated`], [`limits`]). If that process dies,
//! the caller gets an error and the run continues. Both processes exchange messages over pipes
//! ([`message`], [`serve`]).

pub mod isolated;
pub mod limits;
pub mod message;
pub mod serve;

//! Questions about phantoms, and responses with known defects.

pub(crate) mod claim;
pub mod defect_table;
pub(crate) mod fact;
pub(crate) mod question;
pub(crate) mod response;
pub mod response_writer;
pub mod rules;

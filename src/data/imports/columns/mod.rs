//! Roles of the columns of a table: named by the user or guessed from the names.

pub(crate) mod column_guess;
pub(crate) mod column_roles;

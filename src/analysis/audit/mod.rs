//! Can this judge be trusted: its habits, found in its verdicts and by judging changed cases.
//!
//! | question | where |
//! |---|---|
//! | what is asked, and how a pair is changed for it | [`Probe`], [`Change`] |
//! | habits that verdicts show | [`Evidence`] (`position`, `verbosity`, `mirror`) |
//! | what will be judged again | [`Plan`] (`rewrite`, `error_swap`, [`Picture`]) |
//! | judging it | [`judge_all`] |
//! | what it says | `changed`, `looking`, in [`Finding`]s with [`Reading`]s |
//! | whether that is good enough | [`Limit`] |
//!
//! A finding is never more sure than its interval: what so few cases could not have shown is `unclear`,
//! and what could not be run is said and has not passed.

mod again;
mod changed;
mod error_swap;
mod evidence;
mod limit;
mod looking;
mod mirror;
mod paired;
mod picture;
mod plan;
mod position;
mod probe;
mod reading;
mod result;
mod rewrite;
mod subject;
mod text;
mod trial;
mod verbosity;
mod wording;

pub use again::{Given, Sat, Told, judge_all};
pub use evidence::Evidence;
pub use limit::{Checked, Limit, LimitKind};
pub use picture::Picture;
pub use plan::{Pair, Plan, Sitting};
pub use probe::{Change, Probe};
pub use reading::{Reading, Sign};
pub use result::{Audit, Finding, Measure, Outcome, SCHEMA, Unit};
pub use subject::{Asked, Subject};
pub use trial::{Marks, Trial};

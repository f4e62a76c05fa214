//! Agreement statistics: groups of statistics that are computed together, their estimates and the
//! human ceiling.

pub(crate) mod agreement_statistic;
pub(crate) mod case_ratings;
pub(crate) mod coverage;
pub(crate) mod human_ceiling;
pub(crate) mod statistic;
pub(crate) mod statistic_group;

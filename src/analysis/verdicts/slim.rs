//! A line of `records.jsonl`, as far as statistics need it.
//!
//! Nine tenths of a record are analyses and probabilities; read past, a hundred thousand records take
//! seconds. The names are those of [`Record`](crate::judging::run::record::Record).

use std::collections::BTreeMap;

use acem3_experts::{Aspect, Criterion};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::data::cases::CaseLabels;
use crate::support::digest::Digest;

/// A record; `A` is what is read of the criteria in its presentation orders.
#[derive(Debug, Deserialize)]
#[serde(bound = "A: Deserialize<'de>")]
pub(super) struct SlimRecord<A> {
    pub(super) schema: u32,
    pub(super) judge: String,
    pub(super) case: Option<String>,
    pub(super) pair: Option<[String; 2]>,
    pub(super) line: u64,
    pub(super) image: Option<SlimImage>,
    pub(super) responses: Option<[String; 2]>,
    pub(super) labels: Option<CaseLabels>,
    #[serde(default)]
    pub(super) meta: Map<String, Value>,
    pub(super) status: SlimStatus,
    pub(super) scores: Option<[f64; 2]>,
    pub(super) expected: Option<[f64; 2]>,
    #[serde(default)]
    pub(super) aspects: BTreeMap<Aspect, [f64; 2]>,
    #[serde(default)]
    pub(super) criteria: BTreeMap<Criterion, [f64; 2]>,
    #[serde(default)]
    pub(super) orders: Vec<SlimOrder<A>>,
}

/// Criteria, passed over.
pub(super) type Skipped = IgnoredAny;

/// Criteria, read.
pub(super) type ExpectedCriteria = BTreeMap<Aspect, BTreeMap<Criterion, SlimExpected>>;

/// Whether there is a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SlimStatus {
    /// There is.
    Judged,
    /// There is none.
    Unscored,
    /// There is nothing to judge.
    Noted,
}

/// Which image was judged.
#[derive(Debug, Deserialize)]
pub(super) struct SlimImage {
    pub(super) name: String,
    pub(super) sha256: Option<Digest>,
}

/// One presentation order.
#[derive(Debug, Deserialize)]
pub(super) struct SlimOrder<A> {
    pub(super) swapped: bool,
    pub(super) scores: [f64; 2],
    pub(super) aspects: A,
}

/// The expected scores of a criterion.
#[derive(Debug, Deserialize)]
pub(super) struct SlimExpected {
    pub(super) expected: [f64; 2],
}

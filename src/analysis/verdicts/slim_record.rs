//! The fields of a record that statistics need.
//!
//! Nine tenths of a record are analyses and probabilities. Without them, a hundred thousand records
//! are read in seconds. The field names are those of
//! [`Record`](crate::judging::run::record::Record).

use std::collections::BTreeMap;

use acem3_experts::prompt::Form;
use acem3_experts::{Aspect, Criterion};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::data::cases::CaseLabels;
use crate::judging::run::record::record_row::{RecordRow, RowIdentity};
use crate::support::digest::Digest;

/// A record; `A` is the part of the criteria that is read from its presentation orders.
#[derive(Debug, Deserialize)]
#[serde(bound = "A: Deserialize<'de>")]
pub(super) struct SlimRecord<A> {
    pub(super) schema: u32,
    pub(super) judge: String,
    pub(super) key: Option<Digest>,
    pub(super) case: Option<String>,
    #[serde(default)]
    pub(super) form: Form,
    pub(super) pair: Option<[String; 2]>,
    #[serde(default)]
    pub(super) models: Vec<String>,
    pub(super) unlisted_pairs: Option<u64>,
    pub(super) line: u64,
    pub(super) image: Option<SlimImage>,
    pub(super) responses: Option<Vec<String>>,
    pub(super) labels: Option<CaseLabels>,
    #[serde(default)]
    pub(super) meta: Map<String, Value>,
    pub(super) status: SlimStatus,
    pub(super) scores: Option<Vec<f64>>,
    pub(super) expected: Option<Vec<f64>>,
    #[serde(default)]
    pub(super) aspects: BTreeMap<Aspect, Vec<f64>>,
    #[serde(default)]
    pub(super) criteria: BTreeMap<Criterion, Vec<f64>>,
    #[serde(default)]
    pub(super) orders: Vec<SlimOrder<A>>,
}

impl<A> SlimRecord<A> {
    /// Returns the id of the case. A case without a readable id is named by its line: its pairs lower the
    /// coverage of their models like others.
    pub(super) fn case_name(&self) -> String {
        self.case.clone().unwrap_or_else(|| format!("(no id, line {})", self.line))
    }
}

/// Criteria are skipped.
pub(super) type SkippedCriteria = IgnoredAny;

/// The expected scores of the criteria.
pub(super) type ExpectedCriteria = BTreeMap<Aspect, BTreeMap<Criterion, SlimExpected>>;

/// State of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SlimStatus {
    /// The record has a verdict.
    Judged,
    /// The record has no verdict.
    Unscored,
    /// The record reports an input problem that affects no verdict.
    Noted,
}

/// The judged image.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with the name of the image")]
pub(super) struct SlimImage {
    pub(super) name: String,
    pub(super) sha256: Option<Digest>,
}

/// One presentation order.
#[derive(Debug, Deserialize)]
pub(super) struct SlimOrder<A> {
    pub(super) swapped: bool,
    pub(super) first_shown: Option<usize>,
    pub(super) scores: Vec<f64>,
    pub(super) aspects: A,
}

/// The expected scores of a criterion.
#[derive(Debug, Deserialize)]
pub(super) struct SlimExpected {
    pub(super) expected: Vec<f64>,
}

impl<A> RecordRow for SlimRecord<A>
where
    A: for<'de> Deserialize<'de>,
{
    fn schema(&self) -> u32 {
        self.schema
    }

    fn identity(&self) -> RowIdentity<'_> {
        RowIdentity {
            judge: &self.judge,
            case: self.case.as_deref(),
            line: self.line,
            is_judged: self.status == SlimStatus::Judged,
            is_noted: self.status == SlimStatus::Noted,
        }
    }
}

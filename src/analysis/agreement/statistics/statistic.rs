//! Names of the agreement statistics.

use serde::Serialize;

use crate::support::terminal::number::format_two_decimals;

/// An agreement statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Proportion of pairs with the order of the label; a tie is an order (`accuracy_2-tuple`).
    Accuracy,
    /// Accuracy over the pairs that neither judge nor label ties.
    AccuracyWithoutTies,
    /// Proportion of pairs with a better response that the judge prefers; a tie of the judge counts
    /// ½.
    AccuracyPreferred,
    /// Proportion of triples whose three orders all equal those of the label.
    AccuracyTriple,
    /// Cohen's kappa of the three orders.
    OrderKappa,
    /// Fleiss' kappa of the three orders.
    OrderFleiss,
    /// Krippendorff's nominal alpha of the three orders.
    OrderAlphaNominal,
    /// Krippendorff's ordinal alpha of the three orders.
    OrderAlphaOrdinal,
    /// Cohen's kappa of scores.
    Kappa,
    /// Cohen's kappa of scores with linear weights.
    KappaLinear,
    /// Cohen's kappa of scores with quadratic weights.
    KappaQuadratic,
    /// Fleiss' kappa of scores.
    Fleiss,
    /// Krippendorff's nominal alpha of scores.
    AlphaNominal,
    /// Krippendorff's ordinal alpha of scores.
    AlphaOrdinal,
    /// Krippendorff's interval alpha of scores.
    AlphaInterval,
    /// Intraclass correlation (1,1).
    #[serde(rename = "icc_1_1")]
    Icc11,
    /// Intraclass correlation (2,1).
    #[serde(rename = "icc_2_1")]
    Icc21,
    /// Intraclass correlation (3,1).
    #[serde(rename = "icc_3_1")]
    Icc31,
    /// Intraclass correlation (1,k).
    #[serde(rename = "icc_1_k")]
    Icc1k,
    /// Intraclass correlation (2,k).
    #[serde(rename = "icc_2_k")]
    Icc2k,
    /// Intraclass correlation (3,k).
    #[serde(rename = "icc_3_k")]
    Icc3k,
    /// Pearson's correlation of scores.
    Pearson,
    /// Spearman's rank correlation of scores.
    Spearman,
    /// Kendall's tau-b of scores.
    Kendall,
    /// Mean absolute error of scores, in points.
    MeanAbsoluteError,
    /// Mean signed error (judge − label), in points.
    Bias,
}

impl Statistic {
    /// The statistics of pair orders.
    pub const ORDERS: [Self; 7] = [
        Self::Accuracy,
        Self::AccuracyWithoutTies,
        Self::AccuracyPreferred,
        Self::OrderKappa,
        Self::OrderFleiss,
        Self::OrderAlphaNominal,
        Self::OrderAlphaOrdinal,
    ];
    /// The statistics of response scores.
    pub const SCORES: [Self; 18] = [
        Self::Pearson,
        Self::Spearman,
        Self::Kendall,
        Self::Kappa,
        Self::KappaLinear,
        Self::KappaQuadratic,
        Self::Fleiss,
        Self::AlphaNominal,
        Self::AlphaOrdinal,
        Self::AlphaInterval,
        Self::Icc11,
        Self::Icc21,
        Self::Icc31,
        Self::Icc1k,
        Self::Icc2k,
        Self::Icc3k,
        Self::MeanAbsoluteError,
        Self::Bias,
    ];

    /// Returns the name in files.
    pub fn key(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Returns the name outside of tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::AccuracyWithoutTies => "accuracy without ties",
            Self::AccuracyPreferred => "better response preferred",
            Self::OrderFleiss => "preferences: Fleiss' kappa",
            Self::OrderAlphaNominal => "preferences: nominal alpha",
            Self::OrderAlphaOrdinal => "preferences: ordinal alpha",
            Self::KappaLinear => "linear kappa",
            Self::KappaQuadratic => "quadratic kappa",
            Self::AlphaNominal => "nominal alpha",
            Self::AlphaOrdinal => "ordinal alpha",
            Self::AlphaInterval => "interval alpha",
            other => other.name(),
        }
    }

    /// Returns the name in tables; indented if it continues the row above.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "pairwise accuracy",
            Self::AccuracyWithoutTies => "  without ties",
            Self::AccuracyPreferred => "  better response preferred",
            Self::AccuracyTriple => "accuracy of triples",
            Self::OrderKappa => "preferences: Cohen's kappa",
            Self::OrderFleiss => "  Fleiss' kappa",
            Self::OrderAlphaNominal => "  alpha, nominal",
            Self::OrderAlphaOrdinal => "  alpha, ordinal",
            Self::Kappa => "Cohen's kappa",
            Self::KappaLinear => "  linear",
            Self::KappaQuadratic => "  quadratic",
            Self::Fleiss => "Fleiss' kappa",
            Self::AlphaNominal => "Krippendorff's alpha, nominal",
            Self::AlphaOrdinal => "  ordinal",
            Self::AlphaInterval => "  interval",
            Self::Icc11 => "ICC(1,1)",
            Self::Icc21 => "ICC(2,1)",
            Self::Icc31 => "ICC(3,1)",
            Self::Icc1k => "ICC(1,k)",
            Self::Icc2k => "ICC(2,k)",
            Self::Icc3k => "ICC(3,k)",
            Self::Pearson => "Pearson",
            Self::Spearman => "Spearman",
            Self::Kendall => "Kendall's tau-b",
            Self::MeanAbsoluteError => "mean absolute error",
            Self::Bias => "mean signed error (judge − label)",
        }
    }

    /// Returns true for proportions, which are printed in percent.
    pub fn is_proportion(self) -> bool {
        matches!(
            self,
            Self::Accuracy
                | Self::AccuracyWithoutTies
                | Self::AccuracyPreferred
                | Self::AccuracyTriple
        )
    }

    /// Formats a value for tables.
    pub fn format_value(self, value: f64) -> String {
        if self.is_proportion() {
            format!("{:.1} %", 100.0 * value)
        } else {
            format_two_decimals(value)
        }
    }

    /// Formats the bounds of an interval for tables.
    pub fn format_bounds(self, interval: [f64; 2]) -> [String; 2] {
        let without_unit = |text: String| text.trim_end_matches(" %").to_owned();
        interval.map(|bound| without_unit(self.format_value(bound)))
    }

    /// Formats an interval for sentences: `0.40 to 0.61`.
    pub fn format_interval(self, interval: [f64; 2]) -> String {
        self.format_bounds(interval).join(" to ")
    }
}

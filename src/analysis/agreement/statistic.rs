//! The statistics of agreement by name.

use serde::Serialize;

use crate::support::terminal::number::two_decimals;

/// A statistic of agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Pairs whose order is the label's, ties being an order: `accuracy_2-tuple`.
    Accuracy,
    /// The same of the pairs that neither side calls a tie.
    AccuracyWithoutTies,
    /// Of the pairs with a better response, those where the judge prefers it; its tie is half a hit.
    AccuracyPreferred,
    /// Triples of responses whose three orders are all the label's.
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
    /// Cohen's kappa of scores, disagreement weighing by distance.
    KappaLinear,
    /// Cohen's kappa of scores, disagreement weighing by squared distance.
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
    /// The mean absolute error of scores, in points.
    MeanAbsoluteError,
    /// The mean of judge less label, in points.
    Bias,
}

impl Statistic {
    /// Those of orders of pairs.
    pub const ORDERS: [Self; 7] = [
        Self::Accuracy,
        Self::AccuracyWithoutTies,
        Self::AccuracyPreferred,
        Self::OrderKappa,
        Self::OrderFleiss,
        Self::OrderAlphaNominal,
        Self::OrderAlphaOrdinal,
    ];
    /// Those of scores of responses.
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

    /// Its name in files.
    pub fn key(self) -> String {
        // A unit variant is written as its name.
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Its name where no other stands above it.
    pub fn title(self) -> &'static str {
        match self {
            Self::AccuracyWithoutTies => "accuracy without ties",
            Self::AccuracyPreferred => "better response preferred",
            Self::OrderFleiss => "orders: Fleiss' kappa",
            Self::OrderAlphaNominal => "orders: nominal alpha",
            Self::OrderAlphaOrdinal => "orders: ordinal alpha",
            Self::KappaLinear => "linear kappa",
            Self::KappaQuadratic => "quadratic kappa",
            Self::AlphaNominal => "nominal alpha",
            Self::AlphaOrdinal => "ordinal alpha",
            Self::AlphaInterval => "interval alpha",
            other => other.name(),
        }
    }

    /// Its name in tables, where those of a kind follow each other.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "pairwise accuracy (2-tuple)",
            Self::AccuracyWithoutTies => "  without ties",
            Self::AccuracyPreferred => "  better response preferred",
            Self::AccuracyTriple => "accuracy of triples",
            Self::OrderKappa => "orders: Cohen's kappa",
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

    /// Whether it is a part of a whole, told in percent.
    pub fn is_share(self) -> bool {
        matches!(
            self,
            Self::Accuracy
                | Self::AccuracyWithoutTies
                | Self::AccuracyPreferred
                | Self::AccuracyTriple
        )
    }

    /// A value of it, as tables show it.
    pub fn shown(self, value: f64) -> String {
        if self.is_share() {
            format!("{:.1} %", 100.0 * value)
        } else {
            two_decimals(value)
        }
    }

    /// The ends of an interval, as tables show them in brackets.
    pub fn interval_ends(self, interval: [f64; 2]) -> [String; 2] {
        let unit = |text: String| text.trim_end_matches(" %").to_owned();
        interval.map(|end| unit(self.shown(end)))
    }

    /// An interval, as sentences show it: `0.40 to 0.61`.
    pub fn shown_interval(self, interval: [f64; 2]) -> String {
        self.interval_ends(interval).join(" to ")
    }
}

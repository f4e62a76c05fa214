//! A measure: a named estimate, compared with its control.

use serde::{Deserialize, Serialize};

use super::estimate::AuditEstimate;
use super::unit::MeasureUnit;

/// A named estimate, its control, and the difference of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditMeasure {
    /// Name in files.
    pub key: String,
    /// Name in tables.
    pub title: String,
    /// Unit of the estimates.
    pub unit: MeasureUnit,
    /// The estimate.
    #[serde(rename = "reading")]
    pub estimate: AuditEstimate,
    /// The same estimate for the control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<AuditEstimate>,
    /// Name of the control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_title: Option<String>,
    /// Mean difference from the control, paired.
    #[serde(rename = "beyond", default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<AuditEstimate>,
}

/// Key, title and unit of a measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasureName {
    /// Name in files. A measure that exists once per perturbation or model adds `:` and its key.
    pub(crate) key: &'static str,
    /// Name in tables; `{}` is the title of the perturbation or model.
    pub(crate) title: &'static str,
    /// Unit of the estimates.
    pub(crate) unit: MeasureUnit,
}

impl MeasureName {
    /// Creates a measure of this name, without a control.
    pub(crate) fn measure(&self, estimate: AuditEstimate) -> AuditMeasure {
        AuditMeasure {
            key: self.key.to_owned(),
            title: self.title.to_owned(),
            unit: self.unit,
            estimate,
            control: None,
            control_title: None,
            difference: None,
        }
    }

    /// Returns the key of the measure of one perturbation or model.
    pub(crate) fn key_for(&self, subject: &str) -> String {
        format!("{}:{subject}", self.key)
    }

    /// Returns the title of the measure of one perturbation or model.
    pub(crate) fn title_for(&self, subject: &str) -> String {
        self.title.replace("{}", subject)
    }
}

impl AuditMeasure {
    /// Adds the estimate of a control, and the paired difference if there is one.
    #[must_use]
    pub fn with_control(
        self,
        title: &str,
        control: AuditEstimate,
        difference: Option<AuditEstimate>,
    ) -> Self {
        Self { control: Some(control), control_title: Some(title.to_owned()), difference, ..self }
    }

    /// Returns the difference from the control, or the estimate itself if there is no paired
    /// control.
    pub fn net_of_control(&self) -> &AuditEstimate {
        self.difference.as_ref().unwrap_or(&self.estimate)
    }
}

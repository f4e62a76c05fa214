//! Which model a training starts from.

use acem3_projector::ProjectorKind;
use serde::{Deserialize, Serialize};

/// Initial model of a training, and the encoder that replaces its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StartValue", into = "StartValue")]
pub struct StartConfig {
    /// Folder, hub id or `embedded`.
    pub model: String,
    /// Folder or hub id of a published encoder that replaces the vision tower of the model, or adds
    /// one to a text model. The first stage must train the projector, which is new.
    pub vision_tower: Option<String>,
    /// Kind of the new projector; `mlp2x_gelu` by default.
    pub projector: Option<ProjectorKind>,
}

/// The value in a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum StartValue {
    Model(String),
    Table(StartTable),
}

/// A model with an encoder.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartTable {
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vision_tower: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    projector: Option<ProjectorKind>,
}

impl From<StartValue> for StartConfig {
    fn from(value: StartValue) -> Self {
        match value {
            StartValue::Model(model) => Self { model, vision_tower: None, projector: None },
            StartValue::Table(StartTable { model, vision_tower, projector }) => {
                Self { model, vision_tower, projector }
            }
        }
    }
}

impl From<StartConfig> for StartValue {
    fn from(StartConfig { model, vision_tower, projector }: StartConfig) -> Self {
        if vision_tower.is_none() && projector.is_none() {
            return Self::Model(model);
        }
        Self::Table(StartTable { model, vision_tower, projector })
    }
}

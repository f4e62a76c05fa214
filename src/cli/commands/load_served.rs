//! Connects to a judge that a server runs.

use acem3_experts::prompt::{PromptLayout, RubricDetail};
use anyhow::{Result, bail};

use crate::cli::args::JudgePanelArgs;
use crate::judging::panel::PanelOptions;
use crate::judging::served::endpoint::{EndpointSettings, ServedModel};
use crate::judging::served::{ServedJudge, ServedPanelSettings};

/// Token budget of one analysis.
const ANALYSIS_TOKENS: usize = 128;

/// Connects to a model that takes the part of every member.
///
/// # Errors
///
/// The server is not allowed, cannot be reached, or fails its handshake.
pub(super) fn connect(
    url: &str,
    args: &JudgePanelArgs,
    options: PanelOptions,
) -> Result<ServedJudge> {
    let (single_order, allow_http, args) = (args.single_order, args.hub.allow_http, &args.served);
    let Some(model) = &args.model else {
        bail!(
            "--panel: a server needs the name of a model\nhint: pass --model with a model of the server"
        );
    };
    let model = ServedModel::new(EndpointSettings {
        url,
        model,
        engine: args.engine,
        key_variable: args.api_key_env.as_deref(),
        allowed_hosts: &args.allow_host,
        allow_http,
        adapters: &[],
    })?;
    let aspects = options.to_rubric()?.aspects.len();
    let name = model.model.clone();
    ServedJudge::connect(
        ServedPanelSettings {
            name,
            layout: PromptLayout::CaseFirst,
            detail: RubricDetail::Full,
            analysis_tokens: ANALYSIS_TOKENS,
            completion_prefixes: Vec::new(),
            text_only: args.text_only,
            members: vec![model; aspects + 1],
            options,
            single_order,
        },
        args.limits(),
    )
}

//! Connects to a judge whose members are served.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::checkpoints::panel::members_file::{EndpointEntry, MembersFile};
use crate::cli::args::JudgePanelArgs;
use crate::judging::panel::{JudgeOptions, PanelOptions};
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::endpoint::{EndpointSettings, ServedModel};
use crate::judging::served::{ServedJudge, ServedPanelSettings};
use crate::support::terminal::progress::print_lines;

/// Connects to a model that takes the part of every member.
///
/// # Errors
///
/// The server is not allowed, cannot be reached, or fails its handshake.
pub(super) fn connect_model(
    url: &str,
    args: &JudgePanelArgs,
    options: PanelOptions,
) -> Result<ServedJudge> {
    let Some(model) = &args.served.model else {
        bail!(
            "--panel: a server needs the name of a model\nhint: pass --model with a model of the server"
        );
    };
    let settings = EndpointSettings {
        url,
        model,
        engine: args.served.engine,
        key_variable: args.served.api_key_env.as_deref(),
        allowed_hosts: &args.served.allow_host,
        allow_http: args.hub.allow_http,
        adapters: &[],
    };
    let model = ServedModel::new(settings)?;
    let aspects = options.to_rubric()?.aspects.len();
    let config = MembersFile::served_prompt_config(model.model.clone());
    let settings = ServedPanelSettings {
        name: config.name,
        layout: config.layout,
        detail: config.rubric,
        is_trained: config.is_trained,
        analysis_tokens: config.analysis_tokens,
        tokenizer: None,
        completion_prefixes: config.completion_prefixes,
        requests_label_mass: args.served.label_mass,
        text_only: args.served.text_only,
        members: vec![model; aspects + 1],
        options,
        run: JudgeOptions { single_order: args.single_order },
    };
    connect(settings, args)
}

/// Connects to the members of a file; `None` if its members are checkpoints.
///
/// # Errors
///
/// The file is malformed, or a server is not allowed, cannot be reached or fails its handshake.
pub(super) fn connect_members(
    path: &Path,
    args: &JudgePanelArgs,
    options: &PanelOptions,
) -> Result<Option<ServedJudge>> {
    let file = MembersFile::read(path)?;
    let Some(entries) = file.endpoints(path)? else {
        return Ok(None);
    };
    let rubric = options.to_rubric()?;
    if !rubric.has_keys_of_ace_m3() {
        bail!(
            "--rubric {}: {} names one member for each aspect of the rubric ace_m3\n\
             hint: pass --panel URL --model MODEL, which takes any rubric",
            rubric.key,
            path.display()
        );
    }
    let to_model = |entry: &EndpointEntry| {
        let engine = entry.engine.as_deref().map(|name| {
            ServingEngine::by_name(name).with_context(|| {
                format!("engine is `{name}`, expected vllm, sglang, llama.cpp or openai")
            })
        });
        ServedModel::new(EndpointSettings {
            url: &entry.url,
            model: &entry.model,
            engine: engine.transpose()?.or(args.served.engine),
            key_variable: entry.api_key_env.as_deref().or(args.served.api_key_env.as_deref()),
            allowed_hosts: &args.served.allow_host,
            allow_http: args.hub.allow_http,
            adapters: &entry.adapters,
        })
    };
    let members: Result<Vec<_>> = entries.iter().map(to_model).collect();
    let config = file.prompt_config(path);
    config.check_form(options.form, options.shows_reference)?;
    let settings = ServedPanelSettings {
        layout: config.layout,
        detail: config.rubric,
        is_trained: config.is_trained,
        analysis_tokens: config.analysis_tokens,
        tokenizer: file.tokenizer(path)?,
        completion_prefixes: config.completion_prefixes,
        name: config.name,
        requests_label_mass: args.served.label_mass,
        text_only: args.served.text_only || file.is_text_only(),
        members: members.with_context(|| path.display().to_string())?,
        options: options.clone(),
        run: JudgeOptions { single_order: args.single_order },
    };
    connect(settings, args).map(Some)
}

/// Says where cases are sent, and connects to the servers.
fn connect(settings: ServedPanelSettings, args: &JudgePanelArgs) -> Result<ServedJudge> {
    if args.hub.offline {
        bail!(
            "--offline: a served judge needs requests\nhint: omit --offline, or judge with a checkpoint"
        );
    }
    let away = settings.members.iter().filter(|model| !model.url.is_local());
    let hosts: BTreeSet<&str> = away.map(|model| model.url.host()).collect();
    for host in hosts {
        print_lines(&format!("images and texts of the cases are sent to {host} (--allow-host)"));
    }
    let judge = ServedJudge::connect(settings, args.served.limits())?;
    Ok(judge.with_budget(args.served.budget()))
}

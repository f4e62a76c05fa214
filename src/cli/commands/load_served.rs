//! Connects to a judge whose members are served.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::ignored_flags::note_without_effect;
use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::checkpoints::panel::member_entry::EndpointEntry;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::cli::args::JudgePanelArgs;
use crate::judging::panel::{LocalMembers, Panel, PanelOptions};
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::endpoint::{EndpointSettings, ServedModel};
use crate::judging::served::{PanelMember, ServedJudge, ServedPanelSettings};
use crate::support::network::service_url::ServiceUrl;
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
        is_trained: config.is_trained(),
        name: config.name,
        layout: config.layout,
        detail: config.rubric,
        analysis_tokens: config.analysis_tokens,
        tokenizer: None,
        completion_prefixes: config.completion_prefixes,
        requests_label_mass: args.served.label_mass,
        members: vec![PanelMember::Served { model, text_only: args.served.text_only }; aspects + 1],
        options,
        run: args.judge_options()?,
    };
    check_online(args)?;
    connect(settings, None, args)
}

/// Connects to the served members of a file, and loads the others.
///
/// # Errors
///
/// The file is malformed, a checkpoint cannot be loaded, or a server is not allowed, cannot be reached or
/// fails its handshake.
pub(super) fn connect_members(
    path: &Path,
    mut file: MembersFile,
    args: &JudgePanelArgs,
    options: &PanelOptions,
    downloads: &HubDownloads,
) -> Result<(ServedJudge, Vec<HubSource>)> {
    if let Some(model) = &args.served.model {
        bail!(
            "--model {model}: {} names the model of each member\nhint: omit --model",
            path.display()
        );
    }
    if args.served.text_only {
        file.set_text_only();
    }
    let rubric = options.to_rubric()?;
    if !rubric.has_keys_of_ace_m3() {
        bail!(
            "--rubric {}: {} names one member for each aspect of the rubric ace_m3\n\
             hint: pass --panel URL --model MODEL, which takes any rubric",
            rubric.key,
            path.display()
        );
    }
    let judging = rubric.judging_members(options.form);
    let members = file.endpoints(path)?;
    let members = MEMBERS.iter().zip(members).enumerate().map(|(i, (name, entry))| {
        if !judging.contains(&i) {
            return Ok(PanelMember::Unused);
        }
        let member = to_member(entry.as_ref(), args);
        member.with_context(|| format!("{}: members.{name}", path.display()))
    });
    let members: Vec<PanelMember> = members.collect::<Result<_>>()?;
    let config = file.prompt_config(path);
    config.check_form(options.form, options.shows_reference)?;
    let settings = ServedPanelSettings {
        layout: config.layout,
        detail: config.rubric,
        is_trained: config.is_trained(),
        analysis_tokens: config.analysis_tokens,
        tokenizer: file.tokenizer(path)?,
        completion_prefixes: config.completion_prefixes,
        name: config.name,
        requests_label_mass: args.served.label_mass,
        members,
        options: options.clone(),
        run: args.judge_options()?,
    };
    check_online(args)?;
    let (mut copies, mut hub) = (Vec::new(), Vec::new());
    if settings.members.contains(&PanelMember::Local) {
        for placement in args.device.open_all()? {
            let downloads = downloads.clone();
            let panel =
                Panel::load_checkpoints(&file, path, options.clone(), &placement, downloads)?;
            hub = panel.hub().to_vec();
            copies.push(panel.with_memory(args.memory));
        }
    }
    let local = (!copies.is_empty())
        .then(|| LocalMembers::start(copies, args.batch_size as usize))
        .transpose()?;
    let judge = connect(settings, local, args);
    let judge = judge.with_context(|| format!("{}: a member cannot judge", path.display()))?;
    Ok((judge, hub))
}

/// Returns how a member runs. `entry`: the model of a served member.
fn to_member(entry: Option<&EndpointEntry>, args: &JudgePanelArgs) -> Result<PanelMember> {
    let Some(entry) = entry else {
        return Ok(PanelMember::Local);
    };
    let engine = entry.engine.as_deref().map(|name| {
        ServingEngine::by_name(name).with_context(|| {
            format!("engine is `{name}`, expected vllm, sglang, llama.cpp or openai")
        })
    });
    let model = ServedModel::new(EndpointSettings {
        url: &entry.url,
        model: &entry.model,
        engine: engine.transpose()?.or(args.served.engine),
        key_variable: entry.api_key_env.as_deref().or(args.served.api_key_env.as_deref()),
        allowed_hosts: &args.served.allow_host,
        allow_http: args.hub.allow_http,
        adapters: &entry.adapters,
    })?;
    Ok(PanelMember::Served { model, text_only: entry.text_only })
}

/// Checks that requests are allowed.
fn check_online(args: &JudgePanelArgs) -> Result<()> {
    if args.hub.offline {
        bail!(
            "--offline: a served judge needs requests\nhint: omit --offline, or judge with a checkpoint"
        );
    }
    Ok(())
}

/// Says where cases are sent, and connects to the servers.
fn connect(
    settings: ServedPanelSettings,
    local: Option<LocalMembers>,
    args: &JudgePanelArgs,
) -> Result<ServedJudge> {
    let urls = settings.members.iter().filter_map(|member| match member {
        PanelMember::Served { model, .. } => Some(&model.url),
        PanelMember::Local | PanelMember::Unused => None,
    });
    if local.is_none() {
        note_without_effect(&args.set_local_flags(), "servers run all members of the panel");
    }
    let hosts: BTreeSet<&str> = urls.filter(|url| !url.is_local()).map(ServiceUrl::host).collect();
    for host in hosts {
        print_lines(&format!("images and texts of the cases are sent to {host} (--allow-host)"));
    }
    let judge = ServedJudge::connect(settings, local, args.served.requests.limits())?;
    judge.with_budget(args.served.requests.budget())
}

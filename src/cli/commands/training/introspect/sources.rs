//! Opens the adviser and the reviewer.

use std::path::Path;
use std::sync::Arc;

use acem3_experts::prompt::Rubric;
use anyhow::{Context as _, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::IntrospectArgs;
use crate::judging::judge::scripted::{ScriptedJudge, ScriptedSettings};
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::judging::run::journal::RECORDS;
use crate::support::device::Placement;
use crate::support::network::access_token::{API_KEY_VARIABLE, AccessToken};
use crate::support::network::service_url::{ServiceUrl, UrlRules, looks_like_url};
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::introspection::{
    Adviser, AdviserEndpoint, ChatClient, ChatFlags, Discussion, Reviewer, ReviewerEndpoint,
    VerdictSource,
};

/// Opens the sources of an introspection.
pub(super) struct Sources<'a> {
    pub(super) args: &'a IntrospectArgs,
    pub(super) placement: &'a Placement,
    pub(super) verbosity: Verbosity,
    /// Where the adviser looks up what it asks.
    pub(super) knowledge: Option<JudgeKnowledge>,
    /// Rubric of the trained panel.
    pub(super) rubric: Rubric,
}

/// A source as the user names it.
struct NamedSource<'a> {
    /// Panel, records or URL.
    source: &'a str,
    /// Model of a server.
    model: Option<&'a str>,
    /// Flags and key.
    flags: ChatFlags,
    /// True if the server gets the key of the variable.
    has_key: bool,
    /// Where a judge looks up what it asks.
    knowledge: Option<JudgeKnowledge>,
}

impl Sources<'_> {
    /// Opens the adviser and the reviewer.
    ///
    /// # Errors
    /// If a source cannot be opened, or a flag has no effect.
    pub(super) fn open(&self) -> anyhow::Result<Discussion> {
        let args = &self.args.discussion;
        self.check_flags()?;
        let knowledge = self.knowledge.clone();
        let adviser = NamedSource {
            source: &args.adviser,
            model: args.model.as_deref(),
            flags: ChatFlags {
                source: "--adviser",
                model: "--model",
                key_variable: API_KEY_VARIABLE.to_owned(),
            },
            has_key: true,
            knowledge: knowledge.clone(),
        };
        let adviser = if looks_like_url(adviser.source) {
            let chat = self.open_chat(&adviser)?;
            Adviser::Endpoint(Box::new(AdviserEndpoint::new(chat, knowledge, self.rubric.clone())?))
        } else {
            let verdicts = self.open_verdicts(adviser)?;
            // A run would notice only after the first training.
            verdicts.check_suggestions().context("--adviser")?;
            Adviser::Verdicts(verdicts)
        };
        Ok(Discussion { adviser, reviewer: self.open_reviewer()?, max_attempts: args.attempts })
    }

    fn open_reviewer(&self) -> anyhow::Result<Option<Reviewer>> {
        let args = &self.args.discussion;
        let Some(source) = args.reviewer.as_deref() else {
            return Ok(None);
        };
        // The key of the adviser's server is not sent to another one.
        let shares_key = source == args.adviser || !looks_like_url(&args.adviser);
        let key_variable = args.reviewer_key_env.as_deref();
        let reviewer = NamedSource {
            source,
            model: args.reviewer_model.as_deref(),
            flags: ChatFlags {
                source: "--reviewer",
                model: "--reviewer-model",
                key_variable: match key_variable {
                    Some(name) => name.to_owned(),
                    None if shares_key => API_KEY_VARIABLE.to_owned(),
                    None => "--reviewer-key-env".to_owned(),
                },
            },
            has_key: key_variable.is_some() || shares_key,
            knowledge: None,
        };
        Ok(Some(if looks_like_url(source) {
            let chat = self.open_chat(&reviewer)?;
            Reviewer::Endpoint(Box::new(ReviewerEndpoint::new(chat, self.rubric.clone())?))
        } else {
            Reviewer::Verdicts(self.open_verdicts(reviewer)?)
        }))
    }

    /// Returns an error if a flag has no effect.
    fn check_flags(&self) -> anyhow::Result<()> {
        let args = &self.args.discussion;
        let has_adviser_url = looks_like_url(&args.adviser);
        let has_reviewer_url = args.reviewer.as_deref().is_some_and(looks_like_url);
        let flags = [
            ("--model", args.model.is_some() && !has_adviser_url, "--adviser"),
            ("--reviewer-model", args.reviewer_model.is_some() && !has_reviewer_url, "--reviewer"),
            (
                "--reviewer-key-env",
                args.reviewer_key_env.is_some() && !has_reviewer_url,
                "--reviewer",
            ),
        ];
        if let Some((flag, _, source)) = flags.into_iter().find(|(_, is_unused, _)| *is_unused) {
            bail!(
                "{flag}: has no effect, because {source} is no URL\n\
                 hint: omit {flag}, or pass {source} with the base URL of a server"
            );
        }
        Ok(())
    }

    /// Opens a judge or the records of a run.
    fn open_verdicts(&self, named: NamedSource) -> anyhow::Result<VerdictSource> {
        let NamedSource { source, flags, knowledge, .. } = named;
        if is_records(source) {
            let (verdicts, run) =
                VerdictSource::from_records(Path::new(source)).context(flags.source)?;
            run.notices().iter().for_each(|notice| print_lines(notice));
            return Ok(verdicts);
        }
        // A trained panel judges by the rubric of ACE-M³ if nothing else is said.
        let rubric = (!self.rubric.has_keys_of_ace_m3()).then(|| Arc::new(self.rubric.clone()));
        if let Some(script) = source.strip_prefix("scripted:") {
            let settings = ScriptedSettings { rubric, knowledge, ..ScriptedSettings::default() };
            let judge = ScriptedJudge::parse(script, settings)?;
            return Ok(VerdictSource::Judge(Box::new(judge)));
        }
        let mut downloads = HubDownloads::new(self.args.hub, self.verbosity.quiet);
        let files = PanelFiles::resolve(flags.source, source, &mut downloads)?;
        let options = PanelOptions { rubric, knowledge, ..PanelOptions::default() };
        let panel = Panel::load(&files, options, self.placement, downloads)?;
        let judge = PanelJudge::new(panel, JudgeOptions::most_probable())?;
        Ok(VerdictSource::Judge(Box::new(judge)))
    }

    /// Opens the server at a URL. Errors do not contain the URL, which may contain a key.
    fn open_chat(&self, named: &NamedSource) -> anyhow::Result<ChatClient> {
        self.connect(named).context(named.flags.source)
    }

    fn connect(&self, named: &NamedSource) -> anyhow::Result<ChatClient> {
        let allow_http = self.args.hub.allow_http;
        let key_variable =
            if named.has_key { named.flags.key_variable.as_str() } else { API_KEY_VARIABLE };
        let url = ServiceUrl::parse(named.source, UrlRules { key_variable, allow_http })?;
        if self.args.hub.offline {
            bail!(
                "{}: --offline forbids requests\n\
                 hint: remove --offline, or pass a panel or the records of a run",
                url.as_str()
            );
        }
        let Some(model) = named.model else {
            bail!(
                "{}: no model\nhint: pass the name of a model on the server with {}",
                url.as_str(),
                named.flags.model
            );
        };
        let key = if named.has_key { std::env::var(key_variable).ok() } else { None };
        let key = key.and_then(|key| AccessToken::new(&key));
        if !self.verbosity.quiet {
            print_lines(&format!(
                "images, questions and answers of misjudged pairs are sent to {}",
                url.as_str()
            ));
        }
        ChatClient::new(&url, model, key, named.flags.clone())
    }
}

/// Returns true if a source is a file of records or the folder of a run.
fn is_records(source: &str) -> bool {
    let path = Path::new(source);
    let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
    is_jsonl || path.join(RECORDS).exists()
}

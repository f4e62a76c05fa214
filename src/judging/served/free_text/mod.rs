//! A served model that writes free text. Many requests are in progress at the same time.

mod text_client;
pub(in crate::judging::served) mod text_options;
pub(in crate::judging::served) mod text_server;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use self::text_client::TextClient;
pub use self::text_server::TextServer;
use super::budget::{Budget, Spending, unknown_cost};
use super::endpoint::ServedModel;
use super::exchange::model_names::OtherModelNames;
use super::handshake::{test_text_model, to_run_error};
use super::image_urls::ImageUrls;
use super::request_queue::RequestQueue;
use super::transport::usage::UsageCounter;
use super::transport::{RequestLimits, Transport};
use crate::judging::judge::server_report::describe_other_models;
use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage};
use crate::judging::judge::text_writer::{
    FinishedText, TextRequest, TextSampling, TextWriter, WriterSettings, WrittenText,
};

/// Settings of a served writer.
#[derive(Clone, Debug)]
pub struct ServedWriterSettings {
    /// The model.
    pub model: ServedModel,
    /// Token budget and sampling.
    pub sampling: TextSampling,
    /// Limits on requests.
    pub limits: RequestLimits,
    /// The most that the requests may cost.
    pub budget: Option<Budget>,
    /// True if the model gets no images.
    pub text_only: bool,
}

/// A served model that writes free text.
pub struct ServedWriter {
    client: Arc<TextClient>,
    limits: RequestLimits,
    budget: Option<Budget>,
    queue: RequestQueue<WrittenText>,
}

impl ServedWriter {
    /// Connects to the server, and tests that it has the model and, if wanted, that the model sees
    /// images.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, has no such model, or rejects an option that the user passed.
    pub fn connect(settings: ServedWriterSettings) -> Result<Self> {
        let ServedWriterSettings { model, sampling, limits, budget, text_only } = settings;
        let queue = RequestQueue::new()?;
        let transport = Transport::new(&model, limits)?;
        let test = test_text_model(&model, &transport, &sampling, !text_only);
        let (server, options) = queue.block_on(test).map_err(to_run_error)?;
        if budget.is_some() && !server.states_tokens {
            bail!(unknown_cost(&server.model, &server.url));
        }
        let client = TextClient {
            model,
            transport,
            server,
            options,
            images: ImageUrls::default(),
            usage: UsageCounter::default(),
            other_models: OtherModelNames::default(),
        };
        Ok(Self { client: Arc::new(client), limits, budget, queue })
    }

    /// Returns what the server says about itself.
    pub fn server(&self) -> &TextServer {
        &self.client.server
    }

    fn spending(&self) -> Spending {
        self.queue.spending(&self.client.usage)
    }
}

impl TextWriter for ServedWriter {
    fn describe(&self) -> String {
        self.client.server.describe()
    }

    /// The URL is no part of it: the same model on another machine gives the same answers.
    fn settings(&self) -> WriterSettings {
        let TextServer { engine, version, unsupported, .. } = &self.client.server;
        let version = version.as_deref().unwrap_or("of unknown version");
        let mut settings = WriterSettings::new();
        settings.insert("model".to_owned(), self.client.model.model.clone());
        settings.insert("engine".to_owned(), format!("{engine} {version}"));
        if !unsupported.is_empty() {
            let names: Vec<&str> = unsupported.iter().map(String::as_str).collect();
            settings.insert("rejected options".to_owned(), names.join(", "));
        }
        settings
    }

    fn sees_images(&self) -> bool {
        self.client.server.image_tokens.is_some()
    }

    fn capacity(&self) -> usize {
        let requests = self.limits.concurrency.max(1);
        self.budget.map_or(requests, |budget| budget.jobs(self.spending()).min(requests))
    }

    fn check_budget(&self) -> Result<()> {
        self.budget.map_or(Ok(()), |budget| budget.check(self.spending()))
    }

    fn submit(&mut self, number: u64, request: TextRequest) {
        let client = Arc::clone(&self.client);
        self.queue.submit(number, async move { client.write(request).await });
    }

    fn next_finished(&mut self, timeout: Duration) -> Result<Option<FinishedText>> {
        let finished = self.queue.next_finished(timeout)?;
        Ok(finished.map(|(number, result)| FinishedText { number, result }))
    }

    fn usage(&self) -> ServerUsage {
        self.client.usage.usage()
    }

    fn describe_other_models(&self) -> Option<String> {
        let TextClient { server, other_models, .. } = self.client.as_ref();
        describe_other_models(&other_models.names(), server.expected_name(), &server.url)
    }

    fn add_earlier_usage(&mut self, earlier: EarlierUsage) {
        self.client.usage.add_earlier(earlier.usage);
        self.queue.earlier = earlier;
    }
}

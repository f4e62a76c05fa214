//! A local mock of a serving engine: chat completions that obey the constraint, with injected faults.
//!
//! Its replies follow recordings of vLLM 0.32, llama.cpp's server and llama-cpp-python's server.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::constrained_text::{TextPart, WrittenRatings, write_text};
pub(crate) use super::engine_settings::{EngineFlaw, EngineSettings};
use super::mock_http::{read_headers, write_redirect, write_reply, write_text_reply};
use super::mock_reply::{Alternative, Completion, CompletionChoice, Logprobs, Token};

/// How many completions the handshake requests from a server without `/tokenize`.
const HANDSHAKE_REQUESTS: u64 = 4;
/// Path of the completions.
const COMPLETIONS: &str = "/v1/chat/completions";

/// A running mock. It ends with the test.
pub(crate) struct MockEngine {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    settings: EngineSettings,
    requests: AtomicU64,
    /// How often a client asked for the list of models.
    listings: AtomicU64,
    in_progress: AtomicU64,
    most_in_progress: AtomicU64,
    /// Time of all answers together, in microseconds.
    busy_micros: AtomicU64,
    is_down: AtomicBool,
    /// Seed of the answers that are not given.
    seed: AtomicU64,
    /// Bodies of the requests for completions, if they are kept.
    bodies: Mutex<Vec<Value>>,
    keeps_bodies: AtomicBool,
}

impl MockEngine {
    /// Starts a mock on a free port.
    pub(crate) fn start(settings: EngineSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            settings,
            requests: AtomicU64::new(0),
            listings: AtomicU64::new(0),
            in_progress: AtomicU64::new(0),
            most_in_progress: AtomicU64::new(0),
            busy_micros: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            seed: AtomicU64::new(0),
            bodies: Mutex::default(),
            keeps_bodies: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&server);
                std::thread::spawn(move || {
                    let _ = shared.serve(stream);
                });
            }
        });
        Self { url, shared }
    }

    /// Returns the number of requests for completions.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Returns the largest number of requests at one time.
    pub(crate) fn most_in_progress(&self) -> u64 {
        self.shared.most_in_progress.load(Ordering::SeqCst)
    }

    /// Returns the time of all answers together.
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_micros(self.shared.busy_micros.load(Ordering::SeqCst))
    }

    /// Closes all connections from now on, or no longer.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Gives other answers from now on.
    pub(crate) fn change_answers(&self) {
        self.shared.seed.fetch_add(1, Ordering::SeqCst);
    }

    /// Keeps the bodies of later requests.
    pub(crate) fn keep_bodies(&self) {
        self.shared.keeps_bodies.store(true, Ordering::SeqCst);
    }

    /// Returns the bodies that were kept.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.shared.bodies.lock().unwrap().clone()
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Status(u16),
    Closed,
    Slow,
    Cut,
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || self.is_down.load(Ordering::SeqCst) {
                return Ok(());
            }
            let path = line.split(' ').nth(1).unwrap_or_default();
            // A proxy gets the whole address.
            let path =
                path.strip_prefix("http://").map_or(path, |rest| &rest[rest.find('/').unwrap()..]);
            let path = path.to_owned();
            // Reading the request is a part of the answer.
            let start = Instant::now();
            let headers = read_headers(&mut reader)?;
            let length = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let expected = self.settings.key.map(|key| format!("Bearer {key}"));
            if expected.is_some() && headers.get("authorization") != expected.as_ref() {
                let key = headers.get("authorization").cloned().unwrap_or_default();
                // A server may repeat the key in its message.
                write_reply(
                    &mut stream,
                    401,
                    &json!({"error": format!("Unauthorized: {key}")}),
                    None,
                )?;
                continue;
            }
            let is_open = self.answer(&mut stream, &path, &body)?;
            if path == COMPLETIONS {
                self.busy_micros.fetch_add(start.elapsed().as_micros() as u64, Ordering::SeqCst);
            }
            if !is_open {
                return Ok(());
            }
        }
    }

    /// Answers a request. Returns false if it closed the connection.
    fn answer(&self, stream: &mut TcpStream, path: &str, body: &[u8]) -> std::io::Result<bool> {
        if self.settings.has(EngineFlaw::Redirects) {
            write_redirect(stream, "https://elsewhere.example/v1")?;
            return Ok(true);
        }
        match path {
            "/v1/models" if self.listings.fetch_add(1, Ordering::SeqCst) < self.settings.busy => {
                let error = json!({"error": {"message": "Loading model", "code": 503}});
                write_reply(stream, 503, &error, self.settings.retry_after)?;
            }
            "/v1/models" if self.settings.has(EngineFlaw::HasNoModels) => {
                write_reply(stream, 200, &json!({"object": "list", "data": []}), None)?;
            }
            "/v1/models" if !self.settings.has(EngineFlaw::ListsNoModels) => {
                let models =
                    if self.settings.models.is_empty() { &["judge"] } else { self.settings.models };
                let owner = self.settings.owner;
                let entry = |id: &&str| match models.split_first() {
                    // SGLang lists its adapters after the base.
                    Some((base, adapters)) if owner == "sglang" && adapters.contains(id) => {
                        json!({"id": id, "owned_by": owner, "parent": base, "max_model_len": null})
                    }
                    _ => json!({"id": id, "owned_by": owner, "max_model_len": 32768}),
                };
                let entries: Vec<Value> = models.iter().map(entry).collect();
                write_reply(stream, 200, &json!({"object": "list", "data": entries}), None)?;
            }
            "/version" if self.settings.owner == "vllm" => {
                write_reply(stream, 200, &json!({"version": "0.32.0"}), None)?;
            }
            "/server_info" if self.settings.owner == "sglang" => {
                write_reply(stream, 200, &json!({"version": "0.5.23"}), None)?;
            }
            "/tokenize" if self.settings.tokenizes => {
                let body: Value = serde_json::from_slice(body).unwrap();
                let tokens: Vec<u64> = body["prompt"]
                    .as_str()
                    .unwrap()
                    .split_whitespace()
                    .map(|word| hash(&word) % 50_000)
                    .collect();
                write_reply(stream, 200, &json!({"tokens": tokens}), None)?;
            }
            COMPLETIONS => {
                let number = self.requests.fetch_add(1, Ordering::SeqCst);
                let now = self.in_progress.fetch_add(1, Ordering::SeqCst) + 1;
                self.most_in_progress.fetch_max(now, Ordering::SeqCst);
                let is_late = self.settings.late == Some(number);
                let result = self.complete(stream, body, self.fault(number), is_late);
                self.in_progress.fetch_sub(1, Ordering::SeqCst);
                return result;
            }
            _ => write_reply(stream, 404, &json!({"detail": "Not Found"}), None)?,
        }
        Ok(true)
    }

    fn fault(&self, number: u64) -> Fault {
        if number >= HANDSHAKE_REQUESTS && self.settings.has(EngineFlaw::Fails) {
            return Fault::Status(500);
        }
        if number >= HANDSHAKE_REQUESTS && self.settings.has(EngineFlaw::RejectsKeyLater) {
            return Fault::Status(401);
        }
        let is_late = self.settings.late == Some(number);
        if is_late || self.settings.quota.is_some_and(|quota| number >= quota) {
            return Fault::Status(429);
        }
        // The handshake needs a server that works.
        if number < 8 || hash(&(number, "fault")) % 100 >= self.settings.faults_percent {
            return Fault::None;
        }
        match hash(&(number, "kind")) % 5 {
            0 => Fault::Status(429),
            1 => Fault::Status(503),
            2 => Fault::Closed,
            3 => Fault::Slow,
            _ => Fault::Cut,
        }
    }

    fn complete(
        &self,
        stream: &mut TcpStream,
        body: &[u8],
        fault: Fault,
        is_late: bool,
    ) -> std::io::Result<bool> {
        let body: Value = serde_json::from_slice(body).unwrap();
        if self.keeps_bodies.load(Ordering::SeqCst) {
            self.bodies.lock().unwrap().push(body.clone());
        }
        let is_rejected = |word| body["messages"].to_string().contains(word);
        if self.settings.rejects.is_some_and(is_rejected) {
            let error = json!({"error": {"message": "cannot process this", "code": 400}});
            write_reply(stream, 400, &error, None)?;
            return Ok(true);
        }
        let rejected =
            ["max_tokens", "temperature"].into_iter().find(|name| body.get(name).is_some());
        if let Some(name) = rejected.filter(|_| self.settings.has(EngineFlaw::RejectsOptions)) {
            let other = if name == "max_tokens" { "; use 'max_completion_tokens'" } else { "" };
            let message = format!("unsupported: '{name}'{other}");
            write_reply(stream, 400, &json!({"error": {"message": message}}), None)?;
            return Ok(true);
        }
        match fault {
            Fault::Status(status) => {
                let error = json!({"error": {"message": "too many requests", "code": status}});
                let pause = match (is_late, self.settings.quota) {
                    (true, _) => "30",
                    (false, Some(_)) => "3600",
                    (false, None) => "0.1",
                };
                write_reply(stream, status, &error, Some(pause))?;
                return Ok(true);
            }
            Fault::Closed => return Ok(false),
            Fault::Slow => std::thread::sleep(self.settings.delay * 10),
            Fault::None | Fault::Cut => std::thread::sleep(self.settings.delay),
        }
        let reply = self.completion(&body);
        if fault == Fault::Cut {
            let header = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", reply.len());
            stream.write_all(header.as_bytes())?;
            stream.write_all(&reply.as_bytes()[..reply.len() / 2])?;
            return Ok(false);
        }
        write_text_reply(stream, 200, &reply, None)?;
        Ok(true)
    }

    fn completion(&self, body: &Value) -> String {
        let ignored =
            || vec![TextPart { text: "Yes, it looks fine to me.".to_owned(), choices: Vec::new() }];
        let is_continued = body["continue_final_message"] == true;
        let prefix = body["messages"][1]["content"].as_str().filter(|_| is_continued);
        let prefix_tokens = prefix.map_or(0, |text| text.split_whitespace().count());
        let given = self.given_answer(body);
        let seed = hash(&body["messages"]).wrapping_add(self.seed.load(Ordering::SeqCst) << 32);
        let is_forgotten = self.settings.has(EngineFlaw::ForgetsConstraint)
            && self.requests.load(Ordering::SeqCst) > HANDSHAKE_REQUESTS;
        let parts = match write_text(body, seed, given) {
            // Without a constraint, the model rather writes a word.
            _ if prefix.is_some() => vec![TextPart {
                text: "The".to_owned(),
                choices: ["The", "4", "5"].map(str::to_owned).to_vec(),
            }],
            Some(parts) if !(is_forgotten || self.settings.has(EngineFlaw::IgnoresConstraint)) => {
                parts
            }
            _ => ignored(),
        };
        let mut content: String = parts.iter().map(|part| part.text.as_str()).collect();
        let mut finish_reason = "stop";
        if self.settings.repeats_prompt && write_text(body, seed, given).is_none() {
            (content, finish_reason) = repeat_prompt(body);
        }
        let tokens: Vec<Token> = parts.iter().map(token).collect();
        let image_tokens = if self.settings.has(EngineFlaw::DropsImages) { 0 } else { 16 };
        let images = count_images(&body["messages"]) * image_tokens;
        let has_logprobs = !self.settings.has(EngineFlaw::HasNoLogprobs);
        let logprobs = has_logprobs.then_some(Logprobs { content: tokens });
        let is_later = self.requests.load(Ordering::SeqCst) > HANDSHAKE_REQUESTS;
        let hides_tokens = self.settings.has(EngineFlaw::StatesNoTokens)
            || (is_later && self.settings.has(EngineFlaw::HidesTokensLater));
        let prompt_tokens = 20 + images + prefix_tokens;
        let usage = (!hides_tokens)
            .then(|| json!({"prompt_tokens": prompt_tokens, "completion_tokens": parts.len()}));
        let message = json!({"role": "assistant", "content": content});
        let choice = CompletionChoice { index: 0, finish_reason, message, logprobs };
        let is_changed = is_later && self.settings.has(EngineFlaw::ChangesModelLater);
        let answers_as = self.settings.answers_as.or(is_changed.then_some("other"));
        let model = answers_as.map_or(body["model"].clone(), Value::from);
        serde_json::to_string(&Completion { model, choices: [choice], usage }).unwrap()
    }
}

impl Shared {
    fn given_answer(&self, body: &Value) -> Option<&WrittenRatings> {
        let content = body["messages"][0]["content"].as_array()?;
        let texts = content.iter().filter_map(|part| part["text"].as_str());
        let prompt: String = texts.collect();
        let model = body["model"].as_str()?;
        let answer = self.settings.answers.iter().find(|answer| answer.is_for(model, &prompt));
        answer.map(|answer| &answer.ratings)
    }
}

/// Returns the prompt as an answer, with the reason of its end.
fn repeat_prompt(body: &Value) -> (String, &'static str) {
    let content = body["messages"][0]["content"].as_array().unwrap();
    let texts = content.iter().filter_map(|part| part["text"].as_str());
    let words: Vec<String> = texts.flat_map(str::split_whitespace).map(str::to_owned).collect();
    let budget = body["max_tokens"].as_u64().or(body["max_completion_tokens"].as_u64());
    let budget = budget.map_or(usize::MAX, |n| n as usize);
    let finish_reason = if words.len() > budget { "length" } else { "stop" };
    (words[..words.len().min(budget)].join(" "), finish_reason)
}

fn count_images(messages: &Value) -> usize {
    let contents = messages.as_array().into_iter().flatten();
    let parts = contents.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter(|part| part["image_url"].is_object()).count()
}

/// Returns a token. The chosen score has three quarters of the probability.
fn token<'a>(part: &'a TextPart) -> Token<'a> {
    let others = part.choices.len().saturating_sub(1).max(1) as f64;
    let alternative = |choice: &'a String| {
        let probability = if *choice == part.text { 0.75 } else { 0.25 / others };
        Alternative::new(choice, f64::ln(probability))
    };
    let top_logprobs = part.choices.iter().map(alternative).collect();
    Token { chosen: Alternative::new(&part.text, -0.28), top_logprobs }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

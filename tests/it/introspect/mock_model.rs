//! A model behind an OpenAI-compatible endpoint, for tests of adviser and reviewer.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request that was answered.
pub(super) struct AnsweredPrompt {
    pub(super) prompt: String,
    /// The `Authorization` header.
    pub(super) key: Option<String>,
}

/// A model that answers prompts of one adviser or reviewer.
pub(super) struct MockModel {
    /// Base URL.
    pub(super) url: String,
    /// Requests that were answered.
    pub(super) answered: Arc<Mutex<Vec<AnsweredPrompt>>>,
    /// Number of requests that it still answers; then it rejects the key.
    pub(super) left: Arc<AtomicUsize>,
}

impl MockModel {
    /// Starts a server.
    pub(super) fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let answered: Arc<Mutex<Vec<AnsweredPrompt>>> = Arc::default();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let (log, budget) = (Arc::clone(&answered), Arc::clone(&left));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut headers, mut line) = (BTreeMap::new(), String::new());
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some((name, value)) = line.trim().split_once(": ") {
                        headers.insert(name.to_ascii_lowercase(), value.to_owned());
                    }
                    line.clear();
                }
                let mut body = vec![0; headers["content-length"].parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let content = body["messages"][0]["content"].as_array().unwrap();
                let prompt = content.last().unwrap()["text"].as_str().unwrap().to_owned();
                let is_check = prompt == "Answer with the word: yes";
                let (status, reply) = if is_check {
                    (200, "yes".to_owned())
                } else if budget.load(Ordering::SeqCst) == 0 {
                    (401, "no credit".to_owned())
                } else {
                    budget.fetch_sub(1, Ordering::SeqCst);
                    let reply = answer(&prompt);
                    let key = headers.get("authorization").cloned();
                    log.lock().unwrap().push(AnsweredPrompt { prompt, key });
                    (200, reply)
                };
                let reply = json!({"choices": [{"message": {"content": reply}}]}).to_string();
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}", reply.len());
                write!(stream, "{head}\r\nconnection: close\r\n\r\n{reply}").unwrap();
            }
        });
        Self { url, answered, left }
    }

    /// Returns the prompts that were answered.
    pub(super) fn prompts(&self) -> Vec<String> {
        self.answered.lock().unwrap().iter().map(|request| request.prompt.clone()).collect()
    }
}

/// Fills in the form at the end of an adviser's prompt with these scores and one analysis.
pub(super) fn fill_form(prompt: &str, scores: [u8; 2], analysis: &str) -> String {
    let (_, form) = prompt.split_once("exactly this form, and nothing else:\n\n").unwrap();
    let form = form.replace("<one or two sentences>", analysis);
    let (first, second) = form.split_once("Response 2:").unwrap();
    let [first, second] = [(first, scores[0]), (second, scores[1])]
        .map(|(part, score)| part.replace("<0 to 5>", &score.to_string()));
    format!("{first}Response 2:{second}")
}

/// Returns the text between two marks of a prompt.
pub(super) fn between<'a>(prompt: &'a str, start: &str, end: &str) -> &'a str {
    let rest = prompt.split_once(start).unwrap_or_else(|| panic!("{start}: {prompt}")).1;
    rest.split_once(end).unwrap_or_else(|| panic!("{end}: {prompt}")).0.trim()
}

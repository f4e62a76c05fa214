//! `acem3 train introspect`: misjudged cases get better evaluations, which the next round trains
//! on.

mod annotated;
mod asking_panels;
mod discussions;
mod mock_model;
mod people;
mod text_models;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::hostile_hub::start_server;

/// Stage that trains on evaluations.
const STAGE: &str = r#"
[[stages]]
name = "sft"
kind = "sft"
steps = 2
batch = 2
rate = 1e-3
[stages.evaluations]
file = "preferences/preferences.jsonl"
"#;
/// Number of cases, with one pair each.
const CASES: usize = 5;

/// Returns the configuration of a tiny panel at chance level. Its context fits complete
/// evaluations.
pub(super) fn config() -> String {
    let tiny = include_str!("../../tiny.toml").replace("embeddings = 1024", "embeddings = 4096");
    tiny + STAGE
}

/// Creates a folder with cases, evaluations of them and the configuration.
pub(super) fn training_folder() -> Folder {
    let folder = Folder::empty();
    folder.write("train.toml", &config());
    let n = CASES.to_string();
    let layout = ["--layout", "case-first"];
    for (command, more) in [("phantoms", &[][..]), ("preferences", &layout)] {
        let args = ["data", command, "--out", command, "--count", &n, "--seed", "11"];
        let output = folder.run(&[&args[..], more].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    }
    folder
}

/// The command with its configuration and cases.
pub(super) const COMMAND: [&str; 4] = ["train", "introspect", "train.toml", "phantoms"];

pub(super) fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Returns the final scores in the text of a conclusion.
fn final_scores(line: &Value) -> Vec<u8> {
    let text = line["completion"].as_str().unwrap();
    let scores = text.split("Score: ").skip(1);
    scores.map(|rest| rest.as_bytes()[0] - b'0').collect()
}

#[test]
fn introspection_replaces_misjudged_evaluations() {
    let folder = training_folder();
    let output = folder.run(&["judge", "phantoms", "--out", "better"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let out = ["--rounds", "1", "--adviser", "better", "--out", "rounds"];
    let args = [&COMMAND[..], &out, &["--held-out", "phantoms/cases.jsonl", "--restart"]].concat();
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("held-out"), "{}", output.stdout);

    let rounds: Value = serde_json::from_str(&folder.read("rounds/rounds.json")).unwrap();
    let rounds = rounds["rounds"].as_array().unwrap();
    let count = |round: usize, name: &str| rounds[round][name].as_u64().unwrap() as usize;
    let (wrong, corrected, unresolved) = (count(0, "wrong"), count(0, "mended"), count(0, "left"));
    // A panel of this size ignores its input, so most verdicts are wrong.
    assert!(wrong > 0 && corrected > 0 && corrected + unresolved == wrong, "{rounds:?}");
    assert_eq!((count(0, "by_adviser"), count(0, "by_people")), (corrected, 0));
    assert_eq!(lines(&folder.read("rounds/round-0/unresolved.jsonl")).len(), unresolved);

    assert!(!folder.read("rounds/round-1/training/train.toml").contains("start ="));
    // All lines of a corrected case are replaced: four per presentation order, one per member.
    let (before, after) =
        [0, 1].map(|r| lines(&folder.read(&format!("rounds/data/round-{r}.jsonl")))).into();
    assert_eq!(after.len(), count(1, "evaluations"));
    let added: Vec<&Value> = after.iter().filter(|line| line.get("completion").is_some()).collect();
    let unchanged = after.iter().filter(|line| line.get("chosen").is_some()).count();
    assert_eq!(added.len() + unchanged, after.len());
    assert!(
        before.len() - unchanged <= 4 * corrected && before.len() > unchanged,
        "{unchanged} of {}",
        before.len()
    );
    let advice = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    assert_eq!(advice.len(), wrong);
    let accepted = advice.iter().filter(|a| a.get("accepted").is_some());
    let orders: usize = accepted.map(|a| a["accepted"]["orders"].as_array().unwrap().len()).sum();
    assert_eq!(added.len(), 4 * orders);
    for line in &added {
        let image = line["images"][0].as_str().unwrap();
        assert!(folder.path("rounds/data").join(image).is_file(), "{image}");
        assert!(line.get("rejected").is_none());
    }
    let is_conclusion = |line: &&&Value| line["member"] == "conclusion";
    assert_eq!(added.iter().filter(is_conclusion).count(), orders);
    assert!(added.iter().filter(is_conclusion).all(|line| final_scores(line).len() == 2));

    // A second run gives the same results. Changed input is an error.
    let again = folder.run(&args);
    assert_eq!((again.exit_code, &again.stdout), (0, &output.stdout), "{}", again.stderr);
    assert_eq!(lines(&folder.read("rounds/round-0/suggestions.jsonl")), advice);
    let mut evaluations = folder.read("preferences/preferences.jsonl");
    evaluations.truncate(evaluations.trim_end().rfind('\n').unwrap() + 1);
    folder.write("preferences/preferences.jsonl", &evaluations);
    let changed = folder.run(&args);
    assert_eq!(changed.exit_code, 2, "{}", changed.stderr);
    assert!(changed.stderr.contains("not the file that the rounds in"), "{}", changed.stderr);
}

/// Starts a server whose model answers with ties until the prompt contains the labels. Its first
/// reply is 503, and it rejects the parameters `max_tokens` and `temperature`.
fn start_endpoint() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
    let request_log = Arc::clone(&requests);
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            let mut head = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_ascii_lowercase();
                if let Some(n) = lower.strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                head += &lower;
                line.clear();
            }
            assert!(head.starts_with("post /v1/chat/completions"), "{head}");
            assert!(head.contains("authorization: bearer open sesame"), "{head}");
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let (status, reply) = if i == 0 {
                ("503 Service Unavailable", "busy".to_owned())
            } else if let Some(rejected) = ["max_tokens", "temperature"]
                .into_iter()
                .find(|rejected| body.get(rejected).is_some())
            {
                let problem = format!("Unsupported parameter: '{rejected}'");
                ("400 Bad Request", json!({"error": problem}).to_string())
            } else {
                assert_eq!(body["max_completion_tokens"], 1500, "{body}");
                let content = if is_check(&body) { "yes".to_owned() } else { fill_form(&body) };
                let reply = json!({"choices": [{"message": {"content": content}}]});
                ("200 OK", reply.to_string())
            };
            request_log.lock().unwrap().push(body);
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
                reply.len()
            )
            .unwrap();
        }
    });
    (address, requests)
}

/// Returns true for the request that checks the endpoint before the training.
fn is_check(body: &Value) -> bool {
    body["messages"][0]["content"][0]["text"] == "Answer with the word: yes"
}

/// Fills in the form at the end of a prompt.
fn fill_form(body: &Value) -> String {
    let content = body["messages"][0]["content"].as_array().unwrap();
    let text = content.last().unwrap()["text"].as_str().unwrap();
    let (question, form) = text.split_once("exactly this form, and nothing else:\n\n").unwrap();
    let scores: Vec<&str> = match question.split_once("gave Response 1 a final score of ") {
        Some((_, rest)) => rest.splitn(3, [' ', ',']).collect(),
        None => vec!["2"],
    };
    let second = question.split_once("and Response 2 one of ");
    let second = second.map_or("2", |(_, rest)| rest.split([',', ' ']).next().unwrap());
    let rounded = |score: &str| format!("{}", score.parse::<f64>().unwrap().round());
    let (first, second) = (rounded(scores[0]), rounded(second));
    let form = form.replace("<one or two sentences>", "It is so.");
    let (first_part, second_part) = form.split_once("Response 2:").unwrap();
    format!(
        "Here:\n{}Response 2:{}",
        first_part.replace("<0 to 5>", &first),
        second_part.replace("<0 to 5>", &second)
    )
}

#[test]
fn endpoint_retries_include_labels() {
    let folder = training_folder();
    let (address, requests) = start_endpoint();
    let out = ["--rounds", "1", "--out", "rounds", "--model", "oracle", "--adviser", &address];
    let mut command = folder.command(&[&COMMAND[..], &out].concat());
    let output = command.env("OPENAI_API_KEY", "open sesame").output().unwrap();
    let output = crate::folder::program_output(&output);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains(&format!("are sent to {address}")), "{}", output.stderr);

    let advice = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    assert!(!advice.is_empty());
    for line in &advice {
        // A tie contradicts the labels, unless they are a tie too.
        assert!(line["attempts"] == 2 || line["accepted"]["order"] == "=", "{line}");
        assert_eq!(line["accepted"]["orders"].as_array().unwrap().len(), 2, "{line}");
    }
    let requests = requests.lock().unwrap();
    let (checks, requests): (Vec<_>, Vec<_>) = requests.iter().partition(|body| is_check(body));
    // The check receives the 503 reply, and one reply for each of the two rejected parameters.
    assert_eq!(checks.len(), 4);
    let first = &requests[0]["messages"][0]["content"];
    assert_eq!(requests[0]["model"], "oracle");
    let image = first[0]["image_url"]["url"].as_str().unwrap();
    assert!(image.starts_with("data:image/png;base64,iVBOR"), "{image:.40}");
    // Each attempt sends one request per member (four) and presentation order (two).
    let attempts: u64 = advice.iter().map(|line| line["attempts"].as_u64().unwrap()).sum();
    assert_eq!(requests.len() as u64, 8 * attempts);
}

/// A wrong key, an unreachable server and a URL with a key are reported before the training.
#[test]
fn unusable_endpoints_are_rejected_before_training() {
    let folder = training_folder();
    let error_with = |exit_code: i32, url: &str, more: &[&str]| {
        let out = ["--rounds", "1", "--out", "rounds", "--model", "m", "--adviser", url];
        let mut command = folder.command(&[&COMMAND[..], &out, more].concat());
        let output = command.env("OPENAI_API_KEY", "sk-k3y-1234").output().unwrap();
        let output = crate::folder::program_output(&output);
        assert_eq!(output.exit_code, exit_code, "{url}: {}", output.stderr);
        assert!(!folder.path("rounds").exists(), "{url}: {}", output.stderr);
        assert!(!output.stderr.contains("k3y"), "{url}: {}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{url}: {}", output.stderr);
        output.stderr
    };
    let error_of = |url: &str, more: &[&str]| error_with(2, url, more);
    for status in ["401 X", "403 X", "404 X", "302 X\r\nLocation: http://127.0.0.1:9/"] {
        let url = start_server(move |stream| {
            let body = "bad key sk-k3y-1234\u{1b}[2J";
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        });
        let error = error_of(&format!("{url}/v1"), &[]);
        assert!(error.contains(&format!("status {}: bad key …", &status[..3])), "{error}");
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
    }
    let rejected = start_server(|stream| {
        stream.write_all(b"HTTP/1.1 400 X\r\nContent-Length: 13\r\n\r\nunknown model")
    });
    assert!(error_of(&rejected, &[]).contains("status 400: unknown model"));
    let unreachable = error_with(4, "http://127.0.0.1:9/v1", &[]);
    assert!(unreachable.contains("check that the endpoint is running"), "{unreachable}");
    let url = start_server(|_| panic!("no request is expected"));
    assert!(error_of(&url, &["--offline"]).contains("--offline forbids requests"));
    for secret in ["https://k3y@host/v1", "https://u:k3y@host/v1", "https://host/v1?api_key=k3y"] {
        let error = error_of(secret, &[]);
        assert!(error.contains("the URL contains"), "{error}");
        assert!(error.contains("set OPENAI_API_KEY"), "{error}");
    }
    assert!(error_of("http://192.0.2.1/v1", &[]).contains("--allow-http"));
}

#[test]
fn invalid_adviser_and_labels_are_rejected_before_training() {
    let folder = training_folder();
    let error_of = |more: &[&str]| {
        let out = ["--rounds", "1", "--out", "rounds"];
        let output = folder.run(&[&COMMAND[..], &out, more].concat());
        assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
        assert!(!folder.path("rounds").exists(), "{}", output.stderr);
        output.stderr
    };
    let no_model = error_of(&["--adviser", "http://127.0.0.1:9/v1"]);
    assert!(no_model.contains("with --model"), "{no_model}");
    let missing_file = error_of(&["--adviser", "nobody.jsonl"]);
    assert!(missing_file.contains("nobody.jsonl"), "{missing_file}");
    folder.write(
        "cases.jsonl",
        "{\"question\": \"a?\", \"responses\": [{\"model\": \"a\", \"text\": \"b\"}]}\n",
    );
    let not_records = error_of(&["--adviser", "cases.jsonl"]);
    assert!(not_records.contains("cases.jsonl line 1"), "{not_records}");
    assert!(not_records.contains("not a record"), "{not_records}");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let judge = ["judge", demo, "--limit", "4", "--samples", "4", "--out", "sampled"];
    assert_eq!(folder.run(&judge).exit_code, 0);
    let sampled = error_of(&["--adviser", "sampled"]);
    assert!(sampled.contains("--adviser") && sampled.contains("--samples 1"), "{sampled}");
    let endpoint_args = ["--adviser", "http://127.0.0.1:9/v1", "--model", "m"];
    let labelled_cases = folder.read("phantoms/cases.jsonl");
    folder.write("phantoms/cases.jsonl", &labelled_cases.replace("\"final\"", "\"finale\""));
    let unlabelled = error_of(&endpoint_args);
    assert!(unlabelled.contains("phantoms: no pair has final labels"), "{unlabelled}");
    folder.write("phantoms/cases.jsonl", &labelled_cases);
    folder.write(
        "train.toml",
        &config().replace("[stages.evaluations]\nfile = \"preferences/preferences.jsonl\"\n", ""),
    );
    let no_evaluations = error_of(&endpoint_args);
    assert!(no_evaluations.contains("no stage has a file of evaluations"), "{no_evaluations}");
}

//! `acem3 train introspect` as a person meets it: what is judged wrong is mended, and learned.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::folder::Folder;

/// Its stage learns from evaluations.
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
/// Cases, and so the pairs.
const N: usize = 5;

/// How a panel is trained that judges nothing right but by chance; whole evaluations are to fit it.
fn config() -> String {
    let tiny = include_str!("../tiny.toml").replace("embeddings = 1024", "embeddings = 4096");
    tiny + STAGE
}

/// A folder with cases, the evaluations that are learned from them, and the configuration.
fn folder() -> Folder {
    let folder = Folder::empty();
    folder.write("train.toml", &config());
    let n = N.to_string();
    let layout = ["--layout", "case-first"];
    for (command, more) in [("phantoms", &[][..]), ("preferences", &layout)] {
        let args = [
            "data", command, "--out", command, "--count", &n, "--seed", "11",
        ];
        let said = folder.run(&[&args[..], more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
    }
    folder
}

const BASIS: [&str; 4] = ["train", "introspect", "train.toml", "phantoms"];

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// The final scores that a conclusion's text gives.
fn concluded(line: &Value) -> Vec<u8> {
    let text = line["completion"].as_str().unwrap();
    let scores = text.split("Score: ").skip(1);
    scores.map(|rest| rest.as_bytes()[0] - b'0').collect()
}

#[test]
fn what_a_panel_judges_wrong_is_mended_by_verdicts_that_agree_with_people() {
    let folder = folder();
    let said = folder.run(&["judge", "phantoms", "--out", "better"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let out = ["--rounds", "1", "--adviser", "better", "--out", "rounds"];
    let args = [&BASIS[..], &out, &["--held-out", "phantoms/cases.jsonl"]].concat();
    let said = folder.run(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("held-out"), "{}", said.out);

    let rounds: Value = serde_json::from_str(&folder.read("rounds/rounds.json")).unwrap();
    let rounds = rounds["rounds"].as_array().unwrap();
    let count = |round: usize, name: &str| rounds[round][name].as_u64().unwrap() as usize;
    let (wrong, mended, left) = (count(0, "wrong"), count(0, "mended"), count(0, "left"));
    // The verdicts of so small a panel are the same whatever it sees: most are wrong.
    assert!(
        wrong > 0 && mended > 0 && mended + left == wrong,
        "{rounds:?}"
    );
    assert_eq!(
        lines(&folder.read("rounds/round-0/unresolved.jsonl")).len(),
        left
    );

    // Every line of a mended case that was there is replaced; its other presentation is new.
    let (before, after) = [0, 1]
        .map(|r| lines(&folder.read(&format!("rounds/data/round-{r}.jsonl"))))
        .into();
    assert_eq!(after.len(), count(1, "evaluations"));
    let fresh: Vec<&Value> = after
        .iter()
        .filter(|line| line.get("completion").is_some())
        .collect();
    let kept = after
        .iter()
        .filter(|line| line.get("chosen").is_some())
        .count();
    assert_eq!(fresh.len() + kept, after.len());
    assert!(
        before.len() - kept <= 4 * mended && before.len() > kept,
        "{kept} of {}",
        before.len()
    );
    let advice = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    assert_eq!(advice.len(), wrong);
    let accepted = advice.iter().filter(|a| a.get("accepted").is_some());
    let orders: usize = accepted
        .map(|a| a["accepted"]["orders"].as_array().unwrap().len())
        .sum();
    assert_eq!(fresh.len(), 4 * orders);
    for line in &fresh {
        let image = line["images"][0].as_str().unwrap();
        assert!(folder.path("rounds/data").join(image).is_file(), "{image}");
        assert!(line.get("rejected").is_none());
    }
    let ends = |line: &&&Value| line["member"] == "conclusion";
    assert_eq!(fresh.iter().filter(ends).count(), orders);
    assert!(
        fresh
            .iter()
            .filter(ends)
            .all(|line| concluded(line).len() == 2)
    );

    // What is done is not done again, and what was begun with something else is not gone on with.
    let again = folder.run(&args);
    assert_eq!((again.code, &again.out), (0, &said.out), "{}", again.err);
    assert_eq!(
        lines(&folder.read("rounds/round-0/suggestions.jsonl")),
        advice
    );
    let mut given = folder.read("preferences/preferences.jsonl");
    given.truncate(given.trim_end().rfind('\n').unwrap() + 1);
    folder.write("preferences/preferences.jsonl", &given);
    let other = folder.run(&args);
    assert_eq!(other.code, 2, "{}", other.err);
    assert!(
        other.err.contains("not the file that the rounds in"),
        "{}",
        other.err
    );
}

/// A model that finds nobody better until it is told what people said. It is busy the first time, and will not be told
/// how to answer.
fn endpoint() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&asked);
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
            } else if let Some(told) = ["max_tokens", "temperature"]
                .into_iter()
                .find(|told| body.get(told).is_some())
            {
                let problem = format!("Unsupported parameter: '{told}'");
                ("400 Bad Request", json!({"error": problem}).to_string())
            } else {
                assert_eq!(body["max_completion_tokens"], 1500, "{body}");
                let reply = json!({"choices": [{"message": {"content": filled(&body)}}]});
                ("200 OK", reply.to_string())
            };
            kept.lock().unwrap().push(body);
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
                reply.len()
            )
            .unwrap();
        }
    });
    (address, asked)
}

/// The form at the end of a question, filled in.
fn filled(body: &Value) -> String {
    let content = body["messages"][0]["content"].as_array().unwrap();
    let text = content.last().unwrap()["text"].as_str().unwrap();
    let (question, form) = text
        .split_once("exactly this form, and nothing else:\n\n")
        .unwrap();
    let told: Vec<&str> = match question.split_once("gave Response 1 a final score of ") {
        Some((_, rest)) => rest.splitn(3, [' ', ',']).collect(),
        None => vec!["2"],
    };
    let second = question.split_once("and Response 2 one of ");
    let second = second.map_or("2", |(_, rest)| rest.split([',', ' ']).next().unwrap());
    let whole = |score: &str| format!("{}", score.parse::<f64>().unwrap().round());
    let (first, second) = (whole(told[0]), whole(second));
    let form = form.replace("<one or two sentences>", "It is so.");
    let (one, two) = form.split_once("Response 2:").unwrap();
    format!(
        "Here:\n{}Response 2:{}",
        one.replace("<0 to 5>", &first),
        two.replace("<0 to 5>", &second)
    )
}

#[test]
fn a_model_behind_an_endpoint_is_told_what_people_said_when_it_contradicts_them() {
    let folder = folder();
    let (address, asked) = endpoint();
    let out = [
        "--rounds",
        "1",
        "--out",
        "rounds",
        "--model",
        "oracle",
        "--adviser",
        &address,
    ];
    let mut command = folder.command(&[&BASIS[..], &out].concat());
    let output = command
        .env("OPENAI_API_KEY", "open sesame")
        .output()
        .unwrap();
    let said = crate::folder::said(&output);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains(&format!("are sent to {address}")),
        "{}",
        said.err
    );

    let advice = lines(&folder.read("rounds/round-0/suggestions.jsonl"));
    assert!(!advice.is_empty());
    for one in &advice {
        // Both alike is a contradiction, but where people find both alike.
        assert!(
            one["attempts"] == 2 || one["accepted"]["order"] == "=",
            "{one}"
        );
        assert_eq!(
            one["accepted"]["orders"].as_array().unwrap().len(),
            2,
            "{one}"
        );
    }
    let asked = asked.lock().unwrap();
    let first = &asked[0]["messages"][0]["content"];
    assert_eq!(asked[0]["model"], "oracle");
    let image = first[0]["image_url"]["url"].as_str().unwrap();
    assert!(
        image.starts_with("data:image/png;base64,iVBOR"),
        "{image:.40}"
    );
    // Four members, two presentations; once more for who was busy, and for each thing that was refused.
    let attempts: u64 = advice
        .iter()
        .map(|one| one["attempts"].as_u64().unwrap())
        .sum();
    assert_eq!(asked.len() as u64, 8 * attempts + 3);
}

#[test]
fn what_cannot_be_mended_is_said_before_anything_is_trained() {
    let folder = folder();
    let refused = |more: &[&str]| {
        let out = ["--rounds", "1", "--out", "rounds"];
        let said = folder.run(&[&BASIS[..], &out, more].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
        assert!(said.err.contains("hint: "), "{}", said.err);
        assert!(!folder.path("rounds").exists(), "{}", said.err);
        said.err
    };
    let model = refused(&["--adviser", "http://127.0.0.1:9/v1"]);
    assert!(model.contains("with --model"), "{model}");
    let nobody = refused(&["--adviser", "nobody.jsonl"]);
    assert!(nobody.contains("nobody.jsonl"), "{nobody}");
    folder.write(
        "cases.jsonl",
        "{\"question\": \"a?\", \"responses\": [{\"model\": \"a\", \"text\": \"b\"}]}\n",
    );
    let empty = refused(&["--adviser", "cases.jsonl"]);
    assert!(empty.contains("cases.jsonl line 1"), "{empty}");
    assert!(empty.contains("not a record"), "{empty}");
    let oracle = ["--adviser", "http://127.0.0.1:9/v1", "--model", "m"];
    let known = folder.read("phantoms/cases.jsonl");
    folder.write(
        "phantoms/cases.jsonl",
        &known.replace("\"final\"", "\"finale\""),
    );
    let unknown = refused(&oracle);
    assert!(
        unknown.contains("phantoms: no pair has final labels"),
        "{unknown}"
    );
    folder.write("phantoms/cases.jsonl", &known);
    folder.write(
        "train.toml",
        &config().replace(
            "[stages.evaluations]\nfile = \"preferences/preferences.jsonl\"\n",
            "",
        ),
    );
    let none = refused(&oracle);
    assert!(
        none.contains("no stage has a file of evaluations"),
        "{none}"
    );
}

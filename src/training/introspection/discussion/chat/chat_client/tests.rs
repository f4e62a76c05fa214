//! The client against servers on this machine, most of them hostile.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::support::network::service_url::UrlRules;

const KEY: &str = "sk-k3y-of-the-user";

/// Starts a server that reads each request and answers with `reply`. Returns a client of it.
fn client_of(reply: fn(&mut TcpStream) -> std::io::Result<()>) -> ChatClient {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.take(length).read_to_end(&mut Vec::new()).unwrap();
            // The client closes the connection when it has read enough.
            let _ = reply(&mut stream);
        }
    });
    let rules = UrlRules { key_variable: "K", allow_http: false };
    let url = ServiceUrl::parse(&url, rules).unwrap();
    let flags = ChatFlags { source: "--adviser", model: "--model", key_variable: "K".to_owned() };
    let client = ChatClient::new(&url, "m", AccessToken::new(KEY), flags).unwrap();
    ChatClient { first_pause: Duration::ZERO, ..client }
}

fn error_of(client: &ChatClient, timeout: Duration) -> String {
    let policy = RequestPolicy { max_attempts: 2, timeout };
    client.ask_with(&json!([]), 0, policy).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn endless_and_slow_responses_end() {
    let (soon, late) = (Duration::from_millis(300), Duration::from_mins(1));
    let endless = client_of(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            stream.write_all(&[b' '; 1 << 13])?;
        }
    });
    let error = error_of(&endless, late);
    assert!(error.contains("longer than 4194304 bytes"), "{error}");
    let slow = client_of(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            stream.write_all(b" ")?;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let error = error_of(&slow, soon);
    assert!(error.contains("timed out"), "{error}");
    let headers = client_of(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            stream.write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")?;
        }
    });
    let start = std::time::Instant::now();
    error_of(&headers, late);
    assert!(start.elapsed() < late);
    // The status is known before the body ends.
    let rejected = client_of(|stream| {
        stream.write_all(b"HTTP/1.1 401 X\r\n\r\n")?;
        loop {
            stream.write_all(&[b'x'; 1 << 13])?;
        }
    });
    let error = error_of(&rejected, late);
    assert!(error.contains("status 401: xxx") && error.len() < 1000, "{error}");
}

#[test]
fn bodies_are_not_decompressed() {
    // `printf '{"choices":[{"message":{"content":"a"}}]}' | gzip`, shortened: not valid JSON.
    let compressed = client_of(|stream| {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00",
        )
    });
    let answer = compressed.ask(&json!([]), 0).unwrap().unwrap_err();
    assert_eq!(answer.status, 200);
    let answer = answer.reason;
    assert!(answer.starts_with("the response is not JSON"), "{answer}");
}

#[test]
fn repeated_keys_and_escapes_are_not_printed() {
    let echo = client_of(|stream| {
        let body = format!("{{\"error\": \"bad key {KEY}\u{1b}[2J at http://u:{KEY}@h/?k=v\"}}");
        write!(stream, "HTTP/1.1 403 X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let error = error_of(&echo, Duration::from_mins(1));
    assert!(error.contains("status 403") && error.contains("bad key …"), "{error}");
    assert!(!error.contains(KEY) && !error.contains('\u{1b}'), "{error}");
    assert!(error.contains("http://…@h/?…"), "{error}");
    assert!(!format!("{echo:?}").contains(KEY));
    let answer = client_of(|stream| {
        let body = json!({"choices": [{"message": {"content": format!("I know {KEY}")}}]});
        let body = body.to_string();
        write!(stream, "HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    assert_eq!(answer.ask(&json!([]), 0).unwrap(), Ok("I know …".to_owned()));
    let escaped = client_of(|stream| {
        let key: Vec<String> = KEY.bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
        let key = key.concat();
        let body = format!("{{\"choices\": [{{\"message\": {{\"content\": \"I know {key}\"}}}}]}}");
        write!(stream, "HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    assert_eq!(escaped.ask(&json!([]), 0).unwrap(), Ok("I know …".to_owned()));
}

#[test]
fn answer_without_text_is_an_error() {
    let parse =
        |message: Value| parse_answer(&json!({"choices": [{"message": message}]}).to_string());
    assert_eq!(parse(json!({"content": "Yes."})), Ok("Yes.".to_owned()));
    let refusal = parse(json!({"content": null, "refusal": "I cannot\nlook at this."}));
    assert_eq!(refusal, Err("the model refused to answer: I cannot look at this.".to_owned()));
    assert!(parse(json!({"content": null})).unwrap_err().contains("has no"));
    assert!(parse_answer("<html>").unwrap_err().contains("not JSON: <html>"));
}

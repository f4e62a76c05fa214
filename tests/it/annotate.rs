//! The site for human raters, through the program: rating, blindness, kills, results, and hostile requests.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::annotate_site::{Site, command, demo};
use crate::browser::run_in_browser;

/// Number of scores of a response: ten criteria and the final score.
const SCORES: usize = 11;

/// Models and texts of the demo cases, by question and first response.
pub(crate) fn demo_cases() -> Vec<Value> {
    let text = fs::read_to_string(demo().join("cases.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the fields of a complete form. The score of an answer is a function of its text, so that the
/// results can be checked whichever answer was shown first.
pub(crate) fn complete_form(page: &str, cases: &[Value], action: &str) -> String {
    let escaped = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let shown = |text: &Value| page.find(&format!(">{}</p>", escaped(text.as_str().unwrap())));
    let case = cases.iter().find(|case| {
        shown(&case["question"]).is_some()
            && case["responses"].as_array().unwrap().iter().all(|r| shown(&r["text"]).is_some())
    });
    let responses = case.unwrap()["responses"].as_array().unwrap().clone();
    let mut responses: Vec<&Value> = responses.iter().collect::<Vec<_>>();
    responses.sort_by_key(|response| shown(&response["text"]));
    let mut fields = vec![format!("action={action}"), "preference=first".to_owned()];
    for criterion in 0..SCORES {
        for (i, response) in responses.iter().enumerate() {
            let score = score_of(response["text"].as_str().unwrap(), criterion);
            fields.push(format!("score-{criterion}-{i}={score}"));
        }
    }
    fields.push("comment=a%2Cb%20%22c%22".to_owned());
    fields.join("&")
}

fn score_of(text: &str, criterion: usize) -> usize {
    (text.len() + criterion) % 6
}

#[test]
fn ratings_survive_kills_and_are_exported() {
    let dir = tempfile::tempdir().unwrap();
    let cases = demo_cases();
    let mut models: Vec<String> = Vec::new();
    for response in cases.iter().flat_map(|case| case["responses"].as_array().unwrap()) {
        models.push(response["model"].as_str().unwrap().to_owned());
    }
    models.sort();
    models.dedup();
    let mut site = Site::start(dir.path());
    let count = cases.len();
    for name in ["dr-lee", "dr-ito"] {
        let entered = site.send(
            &format!("GET /enter/{}", site.tokens[name]),
            &[format!("Host: {}", site.host)],
            "",
        );
        let cookie = entered.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        assert!(!entered.text().contains(&site.tokens[name]));
        for number in 1..=count {
            let path = format!("/case/{number}");
            let (page, image) = (site.get(name, &path), site.get(name, &format!("{path}/image")));
            assert_eq!((page.status, image.status), (200, 200));
            assert!(image.body.starts_with(b"\x89PNG"));
            for model in &models {
                let is_named = |bytes: &[u8]| {
                    bytes.windows(model.len()).any(|window| window == model.as_bytes())
                };
                let all =
                    [page.headers.as_bytes(), &page.body, image.headers.as_bytes(), &image.body];
                assert!(all.iter().all(|bytes| !is_named(bytes)), "{model} in {path}");
            }
            let page = page.text();
            // An incomplete form is kept as a draft and names what is missing.
            let incomplete = site.post(name, &path, "action=submit&score-0-0=3");
            assert_eq!(incomplete.status, 422);
            assert!(incomplete.text().contains("no score for answer B"));
            let sent = site.post(name, &path, &complete_form(&page, &cases, "submit"));
            assert_eq!(sent.status, 303, "{}", sent.text());
            if number % 3 == 0 {
                let tokens = site.tokens.clone();
                site.kill();
                site = Site::start(dir.path());
                assert_eq!(site.tokens, tokens);
            }
            // A submitted case is final.
            let again = site.post(name, &path, "action=save&score-0-0=0");
            assert_eq!(again.status, 409);
        }
        assert!(site.get(name, "/").text().contains("All cases are done"));
    }
    let admin = site.get("administrator", "/admin").text();
    assert!(admin.contains("dr-lee") && admin.contains("1.00"), "{admin}");
    let scores = site.get("administrator", "/admin/results/scores.csv").text();
    let tasks = site.get("administrator", "/admin/results/label_studio.json");
    assert_eq!(tasks.header("content-type"), Some("application/json"));
    site.kill();
    let status = command(dir.path()).arg("--results").stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let out = dir.path().join("out");
    assert_eq!(fs::read_to_string(out.join("scores.csv")).unwrap(), scores);
    assert_eq!(fs::read(out.join("label_studio.json")).unwrap(), tasks.body);
    check_scores(&scores, &cases);
    let preferences = fs::read_to_string(out.join("preferences.csv")).unwrap();
    assert_eq!(preferences.lines().count(), 1 + 2 * count);
    // Each rater preferred the answer that was shown first.
    let details = fs::read_to_string(out.join("details.csv")).unwrap();
    let first_shown = details.lines().skip(1).filter(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let preferred = if cells[5] == cells[1] { "a" } else { "b" };
        let row = [cells[0], cells[1], cells[2], cells[3], preferred].join(",");
        preferences.lines().any(|line| line == row)
    });
    assert_eq!(first_shown.count(), 2 * count);
    assert!(details.contains("\"a,b \"\"c\"\"\""));
}

/// Checks every score of the table, and that each rater has all.
fn check_scores(scores: &str, cases: &[Value]) {
    let mut rows = scores.lines();
    assert_eq!(rows.next(), Some("case,model,rater,criterion,score"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
    let responses: usize =
        cases.iter().map(|case| case["responses"].as_array().unwrap().len()).sum();
    assert_eq!(rows.len(), 2 * SCORES * responses);
    let keys: Vec<&str> =
        acem3_experts::Criterion::ALL.iter().map(|c| c.key()).chain(["final"]).collect();
    for row in rows {
        let case = cases.iter().find(|case| case["id"] == row[0]).unwrap();
        let responses = case["responses"].as_array().unwrap();
        let response = responses.iter().find(|response| response["model"] == row[1]).unwrap();
        let criterion = keys.iter().position(|key| *key == row[3]).unwrap();
        let expected = score_of(response["text"].as_str().unwrap(), criterion);
        assert_eq!(row[4], expected.to_string(), "{row:?}");
    }
}

#[test]
fn requests_of_strangers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::start(dir.path());
    let host = format!("Host: {}", site.host);
    let cookie = site.cookie(&site.tokens["dr-lee"]);
    let status = |request: &str, headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        site.send(request, &headers, "action=save").status
    };
    // Without a link, with a guess, and with the link of another role.
    for path in [
        "/",
        "/case/1",
        "/case/1/image",
        "/admin",
        "/admin/results/scores.csv",
        "/admin/disagreements",
    ] {
        let request = format!("GET {path}");
        assert_eq!(status(&request, &[&host]), 403, "{path}");
        assert_eq!(
            status(&request, &[&host, &site.cookie("00000000000000000000000000000000")]),
            403
        );
        if path.starts_with("/admin") {
            assert_eq!(status(&request, &[&host, &cookie]), 403, "{path}");
        }
    }
    assert_eq!(status("GET /enter/guess", &[&host]), 403);
    // Another host or origin.
    assert_eq!(status("GET /case/1", &["Host: evil.example", &cookie]), 403);
    let form = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 11"];
    let post = |extra: &[&str]| {
        let headers = [&[host.as_str(), cookie.as_str()], &form[..], extra].concat();
        status("POST /case/1", &headers)
    };
    let own = format!("Origin: http://{}", site.host);
    assert_eq!(post(&[&own]), 200);
    for origin in [&[][..], &["Origin: http://evil.example"], &["Origin: null"]] {
        assert_eq!(post(origin), 403, "{origin:?}");
    }
    assert_eq!(post(&[&own, "Sec-Fetch-Site: cross-site"]), 403);
    // Paths that leave the site, and numbers that are none.
    for path in [
        "/case/0",
        "/case/99",
        "/case/-1",
        "/case/1e3",
        "/../../etc/passwd",
        "/case/..%2f..%2fetc",
        "/style.css/..",
    ] {
        assert_eq!(status(&format!("GET {path}"), &[&host, &cookie]), 404, "{path}");
    }
    assert_eq!(
        status(
            "GET /admin/results/..%2flinks.json",
            &[&host, &site.cookie(&site.tokens["administrator"])]
        ),
        404
    );
    // A body that is too large.
    let huge = format!("comment={}", "x".repeat(2_000_000));
    let answer = site.post("dr-lee", "/case/1", &huge);
    assert!(matches!(answer.status, 413 | 0), "{}", answer.status);
    // Requests that no handler sees are answered with a page, too.
    for (request, body, expected) in
        [("PUT /case/1", "", 405), ("POST /case/1", "action=save", 415), ("GET /case/%ff", "", 400)]
    {
        let headers =
            [host.clone(), cookie.clone(), own.clone(), format!("Content-Length: {}", body.len())];
        let answer = site.send(request, &headers, body);
        assert_eq!(answer.status, expected, "{request}");
        assert!(answer.text().contains("To the start"), "{request}: {}", answer.text());
    }
    let safe = site.get("dr-lee", "/case/1");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(safe.header(name), Some(value));
    }
    assert!(safe.header("content-security-policy").unwrap().contains("default-src 'none'"));
    // The texts of the rubric are those of a case with an image.
    assert!(!safe.text().contains("{#image}") && safe.text().contains("the image and with"));
    assert!(!safe.text().contains("http://") && !safe.text().contains("https://"));
}

#[test]
fn site_works_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::start(dir.path());
    run_in_browser("annotate.cjs", &[&site.link("dr-lee"), &site.link("administrator")]);
}

/// A browser has one cookie, so a page of another rater may still be open.
#[test]
fn page_of_another_link_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::start(dir.path());
    let key = |name: &str, path: &str| {
        let page = site.get(name, path).text();
        let (_, rest) = page.split_once("name=\"page\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let own = key("dr-ito", "/case/1");
    for foreign in [key("dr-lee", "/case/1"), key("dr-ito", "/case/2")] {
        let fields = format!("action=save&score-0-0=3&page={foreign}");
        let sent = site.post("dr-ito", "/case/1", &fields);
        assert!(sent.status == 409 && sent.text().contains("another link"), "{}", sent.text());
    }
    let journal = dir.path().join("out/ratings.jsonl");
    assert_eq!(fs::read_to_string(&journal).unwrap(), "");
    let fields = format!("action=save&score-0-0=3&page={own}");
    assert_eq!(site.post("dr-ito", "/case/1", &fields).status, 200);
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 1);
}

#[test]
fn results_are_written_while_the_site_runs() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::start(dir.path());
    let cases = demo_cases();
    let page = site.get("dr-ito", "/case/1").text();
    assert_eq!(site.post("dr-ito", "/case/1", &complete_form(&page, &cases, "submit")).status, 303);
    let output = command(dir.path()).arg("--results").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scores = fs::read(dir.path().join("out/scores.csv")).unwrap();
    assert_eq!(scores, site.get("administrator", "/admin/results/scores.csv").body);
    // A second site does not start.
    let second = command(dir.path()).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && error.contains("is running"), "{error}");
}

//! Refuses arguments with credentials, before anything prints or stores them.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::support::network::access_token::{API_KEY_VARIABLE, HUB_TOKEN_VARIABLE};

/// Shorter keys may occur in an argument by chance.
const MIN_KEY_BYTES: usize = 8;

/// Text before the value of a credential, in lower case.
const CREDENTIAL_NAMES: [&str; 5] = ["token=", "key=", "password=", "passwd=", "secret="];
/// Start of the tokens of the hub.
const HUB_TOKEN_PREFIX: &str = "hf_";
/// Fewest characters of a token after its prefix.
const MIN_TOKEN_CHARACTERS: usize = 16;

/// Checks the arguments of the program.
///
/// # Errors
///
/// An argument has a URL with a user name, a password or parameters, contains a key of the
/// environment, or looks like a credential. The message does not quote it.
pub fn check(arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    let named = key_variables(&arguments);
    let names = [API_KEY_VARIABLE, HUB_TOKEN_VARIABLE].into_iter();
    let names = names.chain(named.iter().map(String::as_str));
    let keys: Vec<_> = names.map(|name| (name, std::env::var(name))).collect();
    for (number, argument) in arguments.iter().enumerate().skip(1) {
        let place = format!("argument {number} ({} characters)", argument.chars().count());
        // Browsers read `\` in a URL as `/`.
        let url = argument.replace('\\', "/");
        if let Some(problem) = find_url_problem(&url).or_else(|| find_credentials(argument)) {
            bail!(
                "{place}: {problem}\n\
                 hint: remove it, and set {API_KEY_VARIABLE} or {HUB_TOKEN_VARIABLE} to the key; arguments are \
                 printed and stored"
            );
        }
        for (name, key) in &keys {
            let key = key.as_deref().unwrap_or_default().trim();
            if key.len() >= MIN_KEY_BYTES && argument.contains(key) {
                bail!(
                    "{place}: contains the key in {name}\n\
                     hint: remove it; {name} is enough, and arguments are printed and stored"
                );
            }
        }
    }
    Ok(())
}

/// Returns the variables with keys that the arguments or the environment name.
fn key_variables(arguments: &[String]) -> Vec<String> {
    const FLAGS: [&str; 2] = ["--api-key-env", "--reviewer-key-env"];
    const VARIABLES: [&str; 2] = ["ACEM3_API_KEY_ENV", "ACEM3_REVIEWER_KEY_ENV"];
    let after_flag = arguments.windows(2).filter(|pair| FLAGS.contains(&pair[0].as_str()));
    let after_flag = after_flag.map(|pair| pair[1].clone());
    let with_flag = arguments.iter().filter_map(|argument| {
        FLAGS.iter().find_map(|flag| argument.strip_prefix(flag)?.strip_prefix('='))
    });
    let in_environment = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    after_flag.chain(with_flag.map(str::to_owned)).chain(in_environment).collect()
}

/// Finds a credential outside of a URL. Returns what is wrong with the argument.
fn find_credentials(argument: &str) -> Option<&'static str> {
    let lower = argument.to_ascii_lowercase();
    if CREDENTIAL_NAMES.iter().any(|name| lower.contains(name)) {
        return Some("it contains the value of a key, token or password");
    }
    // `user:password@host`, also after slashes. A path of Windows has no `:` in its last part.
    let (user, host) = argument.rsplit_once('@').unwrap_or_default();
    let user = user.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let has_password =
        user.split_once(':').is_some_and(|(name, word)| is_word(name) && is_word(word));
    // A model may have a name such as `llava:7b@q4`.
    if has_password && host.contains(['/', '.', ':']) {
        return Some("it contains a user name and a password");
    }
    let is_token = |text: &str| {
        let token = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        token.len() >= MIN_TOKEN_CHARACTERS
    };
    let mut tokens = argument.split(HUB_TOKEN_PREFIX).skip(1);
    tokens.any(is_token).then_some("it contains a token of the hub")
}

/// Finds a URL with credentials or parameters in an argument. Returns what is wrong with it.
fn find_url_problem(argument: &str) -> Option<&'static str> {
    let (before, rest) = argument.split_once("://")?;
    if !before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let authority = rest.split(['/', '?', '#', ';']).next().unwrap_or_default();
    // Not of an IPv6 address such as `[::1]:8000`.
    let port = authority.rsplit(']').next().unwrap_or_default().split_once(':');
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_password = port.is_some_and(|(_, port)| !is_port(port));
    if has_password || rest.contains('@') || rest.to_ascii_lowercase().contains("%40") {
        return Some("the URL contains a user name or a password");
    }
    if rest.contains(['?', '#', ';']) || rest.to_ascii_lowercase().contains("%3f") {
        return Some("the URL contains parameters after `?`, `#` or `;`");
    }
    find_url_problem(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_are_refused_without_printing_them() {
        for argument in [
            "https://me:PW77@h/a",
            "https://PW77@h/a",
            "--out=https://me:PW77@h/a",
            "https://me:pa\"PW77@h/a",
            "https://me:pa PW77@h/a",
            "https://me:PW77%40h/a",
            "https://me:PW77",
            "https://h/a?token=PW77",
            "https://h/a#token=PW77",
            "https://h/a;token=PW77",
            "http://a/b,http://me:PW77@h",
            "s3://h/a?PW77",
            "https://h/a%3Ftoken=PW77",
            "https:/me:PW77@h/a",
            "//me:PW77@h/a",
            "https:\\\\me:PW77@h/a",
            "me:PW77@h/a",
            "me:PW77@host.org",
            "owner/name?token=PW77",
            "owner/name&api_key=PW77",
            "--password=PW77",
            "owner/name@hf_PW77456789abcdefgh",
            "https://h/v1/hf_PW77456789abcdefgh",
        ] {
            let error = check(["acem3", "judge", argument].map(OsString::from).into_iter());
            let message = error.unwrap_err().to_string();
            assert!(message.starts_with("argument 2 ("), "{message}");
            assert!(message.contains("hint: ") && !message.contains("PW77"), "{message}");
        }
    }

    #[test]
    fn other_arguments_are_accepted() {
        let arguments = [
            "acem3",
            "a@b/c",
            "owner/name@main",
            "http://127.0.0.1:8000/v1",
            "https://[::1]:80/v1",
            "https://host/v1",
            "what is it?",
            "a#b;c",
            "--x=://",
            "C:\\a@b",
            "--max-tokens=3",
            "half_precision",
            "hf_cache/models",
            "note: a@b",
            "owner/name@v1.0",
            "llava:7b@q4",
        ];
        check(arguments.map(OsString::from).into_iter()).unwrap();
    }
}

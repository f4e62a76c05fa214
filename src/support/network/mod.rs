//! Requests to services that the user names: URLs without credentials, hidden access tokens, and
//! responses of limited size.

pub mod access_token;
pub mod http_client;
pub mod response_body;
pub mod service_url;
pub mod url_secrets;

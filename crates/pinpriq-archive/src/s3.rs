//! A place in S3, or in another store that speaks its protocol. Each call waits for its answer, and
//! asks again while that can help, within bounds. Relies on no order of a listing, on no time that
//! the store tells, and of all conditions only on `If-None-Match: *` of a put. Knows nothing of
//! what objects mean, and keeps nothing in memory or on disk.

use std::env;
use std::fmt;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key, S3ConditionalPut};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore as _, ObjectStoreExt as _, PutMode,
    PutOptions, PutPayload, RetryConfig,
};
use reqwest::Url;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::place::{Listing, Place, PlaceError};

/// What the URL of a place in S3 begins with.
const SCHEME: &str = "s3://";

/// How a place in S3 is written. What was given is not repeated: it may have a key in it.
const FORM: &str = "a place in S3 is s3://BUCKET/PREFIX, in letters, digits and -_. without keys: \
                    these are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// How long to rest before each further try of a request, in milliseconds.
const RESTS_MS: [u64; 6] = [100, 200, 400, 800, 1_600, 2_400];

/// The most time for an answer, besides that for bytes. A second try that takes longer is the last.
const ANSWER: Duration = Duration::from_secs(10);

/// How fast a line must be at least, in bytes a second, besides.
const RATE_MIN: u64 = 128 << 10;

/// The largest object that is read. Segments, which are the largest, have 1 GiB at most.
const OBJECT_BYTES_MAX: u64 = 2 << 30;

/// The longest prefix. The names below it have less than a hundred bytes, and a key at most 1,024.
const PREFIX_BYTES_MAX: usize = 512;

/// The most pages of one listing, each of which mostly has a thousand names.
const PAGES_MAX: usize = 10_000;

/// The longest text of a store that a message repeats.
const TOLD_CHARS_MAX: usize = 300;

/// Variables whose values no message may have.
const SECRETS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_TOKEN",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AWS_PROXY_URL",
];

/// Objects of a bucket whose keys begin with a prefix. Must be used and dropped outside of any
/// asynchronous task, since it waits.
pub struct S3Place {
    runtime: Runtime,
    store: AmazonS3,
    /// As the variables say, if they do.
    endpoint: Option<String>,
    bucket: String,
    /// Without a `/` at its end. May be empty.
    prefix: String,
    secrets: Vec<String>,
}

impl fmt::Debug for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Place").field(&self.name()).finish()
    }
}

impl S3Place {
    /// Prepares to use the place `s3://bucket/prefix`, as the variables `AWS_*` of this process
    /// say. Nothing is asked yet.
    pub fn open(url: &str) -> Result<Self, PlaceError> {
        let variables = env::vars_os();
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::with_variables(url, texts)
    }

    /// Prepares to use the place `s3://bucket/prefix`, with these in place of the variables of this
    /// process. Those that do not begin with `AWS_` are passed over.
    pub fn with_variables(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, PlaceError> {
        let (bucket, prefix) = parse(url).ok_or_else(|| bad(FORM.to_owned()))?;
        let mut builder = AmazonS3Builder::new();
        let mut secrets = Vec::new();
        for (name, value) in variables {
            // One that is empty counts as unset.
            if !name.starts_with("AWS_") || value.is_empty() {
                continue;
            }
            if let Ok(key) = name.to_ascii_lowercase().parse::<Key>() {
                check_variable(&name, key, &value)?;
                builder = builder.with_config(key, value.clone());
            }
            let is_secret = SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(&name));
            if is_secret {
                secrets.push(value);
            }
        }
        check_endpoint(&builder)?;
        let endpoint = endpoint_of(&builder);
        install_cryptography();
        let store = configured(builder, &bucket).build().map_err(|error| {
            let why = told(&secrets, &Trouble::of(&error).text);
            bad(format!("S3 cannot be used as the variables AWS_* say: {why}"))
        })?;
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(2).build();
        let runtime = runtime.map_err(|error| bad(format!("cannot wait for S3: {error}")))?;
        Ok(Self { runtime, store, endpoint, bucket, prefix, secrets })
    }

    /// Returns the key of an object.
    fn key(&self, name: &str) -> Result<Path, PlaceError> {
        let key = if self.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.prefix)
        };
        Path::parse(key).map_err(|_| bad(format!("{name:?} is no name of an object")))
    }

    /// Returns what all keys below a prefix of names begin with.
    fn below(&self, prefix: &str) -> String {
        let parts = [self.prefix.as_str(), prefix].into_iter().filter(|part| !part.is_empty());
        parts.flat_map(|part| [part, "/"]).collect()
    }

    /// Waits for what is done to an object.
    fn wait<T>(
        &self,
        what: &'static str,
        name: &str,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, PlaceError> {
        self.runtime.block_on(work).map_err(|trouble| self.error(what, name, &trouble))
    }

    /// Returns what to tell about a request that has not succeeded.
    fn error(&self, what: &'static str, name: &str, trouble: &Trouble) -> PlaceError {
        let name = if name.is_empty() { self.name() } else { name.to_owned() };
        let why = told(&self.secrets, &trouble.text);
        match trouble.kind {
            Kind::NoBucket => PlaceError::NotThere { place: format!("the bucket {}", self.bucket) },
            Kind::Denied => PlaceError::Denied { what, name, why },
            Kind::Wrong => bad(format!("cannot {what} {name}: {why}")),
            Kind::NoKey => {
                let (bucket, endpoint) = (&self.bucket, self.endpoint.as_deref());
                let endpoint = endpoint.unwrap_or("Amazon S3 (AWS_ENDPOINT is not set)");
                let why = format!("no key was found for the bucket {bucket} at {endpoint}: {why}");
                PlaceError::Away { what, name, why }
            }
            Kind::Missing | Kind::Taken | Kind::Passing | Kind::Late => {
                PlaceError::Away { what, name, why }
            }
        }
    }

    /// Creates an object, and finds out whose it is if an answer was lost.
    async fn create_surely(&self, key: &Path, bytes: &[u8]) -> Result<bool, Trouble> {
        let payload = PutPayload::from(bytes.to_vec());
        let within = ANSWER + time_of(bytes.len() as u64);
        // Whether an earlier try may have created it, since its answer was none.
        let mut is_unsure = false;
        let created = patiently(async || {
            let options = PutOptions::from(PutMode::Create);
            let put = self.store.put_opts(key, payload.clone(), options);
            match soon(within, put).await {
                Ok(_) => Ok(true),
                Err(trouble) if trouble.kind == Kind::Taken && !is_unsure => Ok(false),
                Err(trouble) if trouble.kind == Kind::Taken => {
                    let there = self.read(key).await?;
                    there.map(|there| there == bytes).ok_or(trouble)
                }
                Err(trouble) => {
                    is_unsure = true;
                    Err(trouble)
                }
            }
        });
        let trouble = match created.await {
            Err(trouble) if trouble.may_pass() => trouble,
            sure => return sure,
        };
        // The last try may have created it as well.
        match self.read(key).await {
            Ok(Some(there)) => Ok(there == bytes),
            Ok(None) | Err(_) => Err(trouble),
        }
    }

    /// Reads an object, with one try.
    async fn read(&self, key: &Path) -> Result<Option<Vec<u8>>, Trouble> {
        let got = match soon(ANSWER, self.store.get(key)).await {
            Ok(got) => got,
            Err(trouble) if trouble.kind == Kind::Missing => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        let size = got.meta.size;
        if size > OBJECT_BYTES_MAX {
            return Err(Trouble::new(Kind::Wrong, format!("it has {size} bytes")));
        }
        let bytes = soon(ANSWER + time_of(size), got.bytes()).await?;
        if bytes.len() as u64 != size {
            let told = format!("{} of {size} bytes have come", bytes.len());
            return Err(Trouble::new(Kind::Passing, told));
        }
        Ok(Some(bytes.into()))
    }

    /// Lists page by page, so that each has its own tries.
    async fn list_all(&self, below: &str) -> Result<Listing, Trouble> {
        let mut listing = Listing::default();
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let page = patiently(async || {
                let options = PaginatedListOptions {
                    delimiter: Some("/".into()),
                    page_token: token.clone(),
                    ..PaginatedListOptions::default()
                };
                let prefix = Some(below).filter(|below| !below.is_empty());
                soon(ANSWER, self.store.list_paginated(prefix, options)).await
            });
            let page = page.await?;
            // A key that is `below` itself, as tools make for a folder, is none of ours.
            let last = |key: &Path| Some(key.as_ref().strip_prefix(below)?.to_owned());
            let objects = page.result.objects.iter();
            listing.objects.extend(objects.filter_map(|it| Some((last(&it.location)?, it.size))));
            listing.prefixes.extend(page.result.common_prefixes.iter().filter_map(last));
            token = page.page_token.filter(|token| !token.is_empty());
            if token.is_none() {
                listing.sort();
                return Ok(listing);
            }
        }
        Err(Trouble::new(Kind::Wrong, format!("it has more than {PAGES_MAX} pages")))
    }
}

impl Place for S3Place {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        let key = self.key(name)?;
        self.wait("write", name, self.create_surely(&key, bytes))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        let key = self.key(name)?;
        self.wait("read", name, patiently(async || self.read(&key).await))
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        let below = self.below(prefix);
        self.wait("list", prefix, self.list_all(&below))
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        let key = self.key(name)?;
        let removed = patiently(async || match soon(ANSWER, self.store.delete(&key)).await {
            Err(trouble) if trouble.kind == Kind::Missing => Ok(false),
            done => done.map(|()| true),
        });
        self.wait("remove", name, removed)
    }

    fn name(&self) -> String {
        let Self { bucket, prefix, .. } = self;
        if prefix.is_empty() {
            format!("{SCHEME}{bucket}")
        } else {
            format!("{SCHEME}{bucket}/{prefix}")
        }
    }
}

/// What a request has met with, as far as it decides what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// There is no such object.
    Missing,
    /// There is an object of that name.
    Taken,
    /// There is no such bucket.
    NoBucket,
    /// The store does not let us.
    Denied,
    /// There is no key to ask it with.
    NoKey,
    /// The same request may succeed a little later.
    Passing,
    /// So it may, but this one has taken its time.
    Late,
    /// It will never succeed.
    Wrong,
}

/// Why a request has not succeeded.
#[derive(Debug)]
struct Trouble {
    kind: Kind,
    text: String,
}

impl Trouble {
    fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    fn late(within: Duration) -> Self {
        Self::new(Kind::Late, format!("no whole answer has come in {} s", within.as_secs()))
    }

    fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Passing | Kind::Late)
    }

    fn of(error: &Error) -> Self {
        let told = error.to_string();
        if let Some(answer) = told.split_once("non-2xx status code: ").map(|(_, answer)| answer) {
            return Self::of_answer(error, answer);
        }
        if told.contains("redirect without LOCATION") {
            let text = "the bucket is in another region: set AWS_REGION";
            return Self::new(Kind::Wrong, text);
        }
        // Whoever gives keys to this machine, if it is one of Amazon's, is asked at this path.
        if told.contains("/latest/api/token") || told.contains("/latest/meta-data/") {
            let text = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives \
                        them";
            return Self::new(Kind::NoKey, text);
        }
        let text = innermost(error);
        let is_wrong = !matches!(error, Error::Generic { .. })
            || text.contains("invalid peer certificate")
            || text.contains("certificates were loaded");
        Self::new(if is_wrong { Kind::Wrong } else { Kind::Passing }, text)
    }

    /// Of a status of three digits and its name, a colon, and a document that may have a code and a
    /// message. The rest of the document is left out: it may have a key in it.
    fn of_answer(error: &Error, answer: &str) -> Self {
        let (status, document) = answer.split_once(':').unwrap_or((answer, ""));
        let code = element(document, "Code").unwrap_or_default();
        let kind = match (error, status.get(..3).unwrap_or_default()) {
            (_, "404") if code == "NoSuchBucket" => Kind::NoBucket,
            (Error::NotFound { .. }, _) => Kind::Missing,
            (Error::AlreadyExists { source, .. }, "304" | "412") if source.is::<Error>() => {
                Kind::Taken
            }
            _ if ["RequestTimeout", "OperationAborted"].contains(&code) => Kind::Passing,
            _ if ["ExpiredToken", "InvalidToken"].contains(&code) => Kind::Denied,
            (_, "401" | "403") => Kind::Denied,
            // Two puts of one name at a time: one of them is asked to try again.
            (_, "408" | "409" | "429") => Kind::Passing,
            (_, status) if status.starts_with('5') && status != "501" => Kind::Passing,
            _ => Kind::Wrong,
        };
        let told = [status, code, element(document, "Message").unwrap_or_default()];
        let told: Vec<_> = told.into_iter().filter(|part| !part.is_empty()).collect();
        Self::new(kind, told.join(": "))
    }
}

/// Returns bucket and prefix.
fn parse(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix(SCHEME)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_plain = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain) && text != "." && text != ".."
    };
    let is_right = is_plain(bucket) && (prefix.is_empty() || prefix.split('/').all(is_plain));
    let is_short = prefix.len() <= PREFIX_BYTES_MAX;
    (is_right && is_short).then(|| (bucket.to_owned(), prefix.to_owned()))
}

/// Refuses values that become a part of a URL and cannot. What asks the store would panic.
fn check_variable(name: &str, key: Key, value: &str) -> Result<(), PlaceError> {
    match key {
        Key::Endpoint | Key::S3Endpoint | Key::StsEndpoint | Key::MetadataEndpoint => {
            // What is before it may be a secret, so that it is not shown.
            if value.contains('@') {
                let what = format!("{name} must not have keys in it: set AWS_ACCESS_KEY_ID");
                return Err(bad(what));
            }
            if !is_endpoint(value) {
                let value = value.escape_debug();
                return Err(bad(format!("{name} is {value}: give https://HOST:PORT")));
            }
        }
        Key::Region | Key::DefaultRegion
            if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) =>
        {
            let value = value.escape_debug();
            return Err(bad(format!("{name} is {value}: give one such as eu-central-1")));
        }
        _ => {}
    }
    Ok(())
}

/// Whether this is a scheme, a host, perhaps a port, and perhaps a path.
fn is_endpoint(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let consists = |part: &str, others: &[u8]| {
        part.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    ["http", "https"].contains(&scheme.to_lowercase().as_str())
        && !authority.is_empty()
        && !authority.ends_with(':')
        && consists(authority, b"-._:[]")
        && consists(path, b"-._~/%")
        && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// The endpoint of the store, as the variables say.
fn endpoint_of(builder: &AmazonS3Builder) -> Option<String> {
    let value = |key: &Key| builder.get_config_value(key);
    value(&Key::S3Endpoint).or_else(|| value(&Key::Endpoint))
}

/// Refuses an endpoint that would show keys.
fn check_endpoint(builder: &AmazonS3Builder) -> Result<(), PlaceError> {
    let value = |key: &Key| builder.get_config_value(key);
    let endpoint = endpoint_of(builder).unwrap_or_default();
    let allowed = value(&Key::Client(ClientConfigKey::AllowHttp)).unwrap_or_default();
    let is_allowed = ["1", "true", "on", "yes", "y"].contains(&allowed.to_lowercase().as_str());
    if endpoint.to_lowercase().starts_with("http:") && !is_allowed {
        let told = "the endpoint of S3 is not encrypted: use https, or set AWS_ALLOW_HTTP=true";
        return Err(bad(told.to_owned()));
    }
    Ok(())
}

/// Sets what no variable decides.
fn configured(builder: AmazonS3Builder, bucket: &str) -> AmazonS3Builder {
    builder
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // Not all stores know the other way, and one object is removed at a time.
        .with_disable_bulk_delete(true)
        // Who tries again must know that, so only this file does.
        .with_retry(RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 0,
            retry_timeout: Duration::ZERO,
        })
        // Each try has its own limit here, by its bytes.
        .with_config(Key::Client(ClientConfigKey::Timeout), "1day")
}

/// What speaks HTTP uses the cryptography of the process. Everything else here names its own, which
/// is the same.
fn install_cryptography() {
    // An error means that there is one already.
    let _is_first = rustls::crypto::ring::default_provider().install_default();
}

/// Tries until something else comes of it than what may pass, or enough tries are made.
async fn patiently<T>(mut work: impl AsyncFnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    let mut is_late = false;
    let mut done = work().await;
    for rest_ms in RESTS_MS {
        match &done {
            Err(trouble) if trouble.kind == Kind::Late && is_late => break,
            Err(trouble) if trouble.may_pass() => is_late |= trouble.kind == Kind::Late,
            _ => break,
        }
        rest(Duration::from_millis(rest_ms)).await;
        done = work().await;
    }
    done
}

#[expect(clippy::disallowed_methods, reason = "a store is asked again after a while")]
async fn rest(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits for one answer.
async fn soon<T>(
    within: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    match timeout(within, answer).await {
        Ok(done) => done.map_err(|error| Trouble::of(&error)),
        Err(_) => Err(Trouble::late(within)),
    }
}

/// How long some bytes may take.
fn time_of(bytes: u64) -> Duration {
    Duration::from_secs(bytes / RATE_MIN)
}

/// Returns the text of an element in a document.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

/// Returns the cause of all causes, which says most and has no address in it.
fn innermost(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Returns a text without secrets, in one line that is not too long. It is cut last, since half a
/// secret would not be found.
fn told(secrets: &[String], text: &str) -> String {
    let without = |text: String, secret: &String| text.replace(secret.as_str(), "…");
    let text = secrets.iter().fold(text.to_owned(), without);
    let in_line = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    in_line.take(TOLD_CHARS_MAX).collect()
}

fn bad(what: String) -> PlaceError {
    PlaceError::Bad { what }
}

#[cfg(test)]
mod tests {
    use super::{TOLD_CHARS_MAX, told};

    #[test]
    fn a_secret_is_left_out_before_a_text_is_cut() {
        let before = "x".repeat(TOLD_CHARS_MAX - 3);
        let secrets = ["SECRET".to_owned()];
        assert_eq!(told(&secrets, &format!("{before}SECRET\n")), format!("{before}… "));
        assert_eq!(told(&secrets, &"x".repeat(500)).len(), TOLD_CHARS_MAX);
    }
}

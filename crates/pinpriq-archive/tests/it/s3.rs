//! A place in S3, against a store on loopback that can do what is asked here and nothing more.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use pinpriq_archive::place::{Place as _, PlaceError};
use pinpriq_archive::s3::S3Place;

/// What happens to the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// None at all: as it should be.
    None,
    /// It is answered with this status, and not carried out.
    Status(u16),
    /// It is carried out, and the answer is lost.
    Lost,
    /// Another writer comes first, and the answer is lost.
    Overtaken,
    /// Half of the answer comes.
    Half,
    /// Two puts of one name at a time: neither is carried out.
    Conflict,
}

#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Vec<u8>>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
}

struct Request {
    method: String,
    /// Without the bucket.
    key: String,
    query: String,
    is_new_only: bool,
    body: Vec<u8>,
}

const PAGE: usize = 2;

impl Store {
    fn answer(&mut self, request: &Request, fault: Fault) -> (u16, Vec<u8>) {
        let Request { method, key, .. } = request;
        self.requests.push(method.clone());
        match fault {
            Fault::Status(status) => return (status, told("Told", "the key KEY of SECRET")),
            Fault::Conflict => return (409, told("ConditionalRequestConflict", "again")),
            Fault::Overtaken => drop(self.objects.insert(key.clone(), b"another".to_vec())),
            Fault::None | Fault::Lost | Fault::Half => {}
        }
        match method.as_str() {
            "PUT" if request.is_new_only && self.objects.contains_key(key) => {
                (412, told("PreconditionFailed", "it is there"))
            }
            "PUT" => {
                self.objects.insert(key.clone(), request.body.clone());
                (200, Vec::new())
            }
            "DELETE" => {
                self.objects.remove(key);
                (204, Vec::new())
            }
            "GET" if key.is_empty() => (200, self.list(&request.query)),
            "GET" => match self.objects.get(key) {
                Some(bytes) => (200, bytes.clone()),
                None => (404, told("NoSuchKey", "there is none")),
            },
            other => panic!("{other} is not expected"),
        }
    }

    /// Lists in the wrong order, a few at a time.
    fn list(&self, query: &str) -> Vec<u8> {
        let parts: BTreeMap<_, _> = query.split('&').filter_map(|it| it.split_once('=')).collect();
        let prefix = parts.get("prefix").map_or(String::new(), |it| it.replace("%2F", "/"));
        let mut found = Vec::new();
        for (key, bytes) in &self.objects {
            let Some(rest) = key.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((first, _)) => found.push(format!(
                    "<CommonPrefixes><Prefix>{prefix}{first}/</Prefix></CommonPrefixes>"
                )),
                None => found.push(format!(
                    "<Contents><Key>{key}</Key><Size>{}</Size><ETag>x</ETag>\
                     <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                    bytes.len()
                )),
            }
        }
        found.dedup();
        found.reverse();
        let from = parts.get("continuation-token").map_or(0, |it| it.parse::<usize>().unwrap());
        let page: String = found.iter().skip(from).take(PAGE).cloned().collect();
        let next = from + PAGE;
        let more = if next < found.len() {
            format!("<NextContinuationToken>{next}</NextContinuationToken>")
        } else {
            String::new()
        };
        format!("<ListBucketResult>{more}{page}</ListBucketResult>").into_bytes()
    }
}

fn told(code: &str, message: &str) -> Vec<u8> {
    format!("<Error><Code>{code}</Code><Message>{message}</Message><Key>SECRET</Key></Error>")
        .into_bytes()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut is_new_only) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        is_new_only |= line == "if-none-match: *";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = path.strip_prefix("/bucket").unwrap().trim_start_matches('/').to_owned();
    Some(Request { method, key, query: query.to_owned(), is_new_only, body })
}

fn serve(mut stream: TcpStream, store: &Mutex<Store>) {
    let Some(request) = read(&stream) else { return };
    let mut store = store.lock().unwrap();
    let fault = store.faults.pop_front().unwrap_or(Fault::None);
    let (status, body) = store.answer(&request, fault);
    if matches!(fault, Fault::Lost | Fault::Overtaken) {
        return;
    }
    let head = format!(
        "HTTP/1.1 {status} Told\r\ncontent-length: {}\r\netag: \"x\"\r\nconnection: close\r\n\
         last-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
        body.len()
    );
    let shown = if fault == Fault::Half { body.len() / 2 } else { body.len() };
    // The other side may have gone already.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..shown]));
}

/// Begins a store, and returns its endpoint. The thread ends with the tests.
fn listen(faults: &[Fault]) -> (Arc<Mutex<Store>>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let store = Arc::new(Mutex::new(Store { faults: faults.to_vec().into(), ..Store::default() }));
    let theirs = Arc::clone(&store);
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap(), &theirs);
        }
    });
    (store, format!("http://{address}"))
}

/// Begins a store and a place in it.
fn begin(url: &str, faults: &[Fault]) -> (Arc<Mutex<Store>>, S3Place) {
    let (store, endpoint) = listen(faults);
    let variables = [("AWS_ENDPOINT_URL", endpoint.as_str()), ("AWS_ALLOW_HTTP", "true")];
    (store, open(url, &variables).unwrap())
}

fn open(url: &str, variables: &[(&str, &str)]) -> Result<S3Place, PlaceError> {
    let keys = [("AWS_ACCESS_KEY_ID", "KEY"), ("AWS_SECRET_ACCESS_KEY", "SECRET")];
    let all = keys.iter().chain(variables);
    S3Place::with_variables(url, all.map(|(name, value)| ((*name).into(), (*value).into())))
}

#[test]
fn create_tells_whether_the_name_was_free() {
    let (store, place) = begin("s3://bucket/a/b", &[]);
    assert!(place.create("marks/1", b"one").unwrap());
    assert!(!place.create("marks/1", b"two").unwrap());
    // The same bytes are another's, unless an answer of ours was lost.
    assert!(!place.create("marks/1", b"one").unwrap());
    assert_eq!(place.get("marks/1").unwrap().unwrap(), b"one");
    assert_eq!(place.get("marks/2").unwrap(), None);
    assert!(store.lock().unwrap().objects.contains_key("a/b/marks/1"));
    assert_eq!(place.name(), "s3://bucket/a/b");
}

#[test]
fn create_whose_answer_was_lost_is_ours() {
    for faults in [
        vec![Fault::Lost],
        vec![Fault::Status(503), Fault::Lost, Fault::Lost],
        vec![Fault::Conflict, Fault::Lost, Fault::Status(500)],
        vec![Fault::Lost, Fault::None, Fault::Half],
        // All puts are lost, and what is there decides.
        vec![Fault::Lost; 7],
    ] {
        let (store, place) = begin("s3://bucket/", &faults);
        assert!(place.create("it", b"ours").unwrap(), "{faults:?}");
        assert_eq!(store.lock().unwrap().objects["it"], b"ours");
    }
}

#[test]
fn create_that_another_has_overtaken_is_not_ours() {
    for faults in [
        vec![Fault::Overtaken],
        vec![Fault::Status(500), Fault::Overtaken, Fault::Status(503)],
        vec![Fault::Overtaken; 7],
    ] {
        let (store, place) = begin("s3://bucket", &faults);
        assert!(!place.create("it", b"ours").unwrap(), "{faults:?}");
        assert_eq!(store.lock().unwrap().objects["it"], b"another");
    }
}

#[test]
fn half_an_answer_is_asked_for_again() {
    let faults = [Fault::None, Fault::Half, Fault::Half, Fault::Status(429)];
    let (store, place) = begin("s3://bucket/p", &faults);
    let bytes = vec![7; 100_000];
    assert!(place.create("it", &bytes).unwrap());
    assert_eq!(place.get("it").unwrap().unwrap(), bytes);
    assert_eq!(store.lock().unwrap().requests, ["PUT", "GET", "GET", "GET", "GET"]);
}

#[test]
fn listing_is_sorted_and_without_the_prefix() {
    let (store, place) = begin("s3://bucket/p", &[]);
    for name in ["c", "a", "b", "d/1", "d/2", "e/f/1", "m/n"] {
        assert!(place.create(name, name.as_bytes()).unwrap());
    }
    // What a tool makes for a folder, and what is outside.
    store.lock().unwrap().objects.insert("pq/x".into(), vec![]);
    let root = place.list("").unwrap();
    assert_eq!(root.objects, [("a".into(), 1), ("b".into(), 1), ("c".into(), 1)]);
    assert_eq!(root.prefixes, ["d", "e", "m"]);
    let below = place.list("d").unwrap();
    assert_eq!(below.objects, [("1".into(), 3), ("2".into(), 3)]);
    assert!(below.prefixes.is_empty());
    assert!(place.list("nowhere").unwrap().objects.is_empty());
}

#[test]
fn removed_object_is_gone() {
    let (_, place) = begin("s3://bucket/p", &[Fault::None, Fault::Lost]);
    assert!(place.create("it", b"1").unwrap());
    assert!(place.remove("it").unwrap());
    assert_eq!(place.get("it").unwrap(), None);
}

#[test]
fn refusal_of_the_store_ends_at_once_and_shows_no_key() {
    let (store, place) = begin("s3://bucket/p", &[Fault::Status(403), Fault::Status(501)]);
    let denied = place.create("it", b"1").unwrap_err();
    assert!(matches!(denied, PlaceError::Denied { .. }), "{denied}");
    let unknown = place.create("it", b"1").unwrap_err();
    for message in [denied.to_string(), unknown.to_string()] {
        assert!(message.contains("it"), "{message}");
        assert!(!message.contains("KEY") && !message.contains("SECRET"), "{message}");
    }
    assert_eq!(store.lock().unwrap().requests.len(), 2);
}

#[test]
fn key_under_a_name_in_small_letters_is_not_shown_either() {
    let (_, endpoint) = listen(&[Fault::Status(403)]);
    let variables = [
        ("AWS_access_key_id", "KEY"),
        ("AWS_Secret_Access_Key", "SECRET"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let place = S3Place::with_variables("s3://bucket", variables).unwrap();
    let denied = place.create("it", b"1").unwrap_err().to_string();
    assert!(denied.contains("403"), "{denied}");
    assert!(!denied.contains("KEY") && !denied.contains("SECRET"), "{denied}");
}

#[test]
fn store_that_stays_away_is_given_up() {
    let (_, place) = begin("s3://bucket/p", &[Fault::Status(503); 8]);
    let away = place.list("marks").unwrap_err();
    assert!(matches!(away, PlaceError::Away { .. }), "{away}");
    assert!(away.to_string().contains("503"), "{away}");
}

#[test]
fn wrong_url_is_refused_and_not_repeated() {
    for url in [
        "s3://",
        "s3:///prefix",
        "s3://KEY:HIDDEN@bucket",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/?HIDDEN",
        "s3://bucket/a b",
        "bucket",
    ] {
        let refused = open(url, &[]).unwrap_err().to_string();
        assert!(refused.contains("s3://BUCKET/PREFIX"), "{url}: {refused}");
        assert!(!refused.contains("HIDDEN"), "{url}: {refused}");
    }
}

#[test]
fn endpoint_that_is_no_url_is_refused() {
    let names = ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];
    for name in names {
        for wrong in [
            "minio:9000",
            "minio",
            "http://",
            "https:///minio",
            "http://bad host",
            "https://minio:",
            "https://minio:99999",
            "https://minio:9000/a b",
            "https://minio/<x>",
            "https://minio?x",
            "ftp://minio:9000",
            "https://[::1",
            "https://minio\n",
        ] {
            let refused = open("s3://bucket/p", &[(name, wrong)]).unwrap_err();
            assert!(matches!(refused, PlaceError::Bad { .. }), "{name} {wrong:?}: {refused}");
            let told = refused.to_string();
            assert!(told.starts_with(name) && told.contains("give https://HOST:PORT"), "{told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
        for right in [
            "",
            "https://minio:9000",
            "https://minio:9000/",
            "HTTPS://my_minio.example/store-1",
            "https://[::1]:9000",
        ] {
            let opened = open("s3://bucket/p", &[(name, right)]);
            assert!(opened.is_ok(), "{name} {right:?}: {opened:?}");
        }
    }
    let told = open("s3://bucket", &[("AWS_ENDPOINT", "minio:9000")]).unwrap_err().to_string();
    assert_eq!(told, "AWS_ENDPOINT is minio:9000: give https://HOST:PORT");
    let told = open("s3://bucket", &[("AWS_REGION", "eu central")]).unwrap_err().to_string();
    assert_eq!(told, "AWS_REGION is eu central: give one such as eu-central-1");
}

#[test]
fn without_keys_it_is_said_which_are_missing_and_for_what() {
    // Nobody answers at this port.
    let variables = [
        ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT", "https://127.0.0.1:1"),
        ("AWS_ACCESS_KEY_ID", ""),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let place = S3Place::with_variables("s3://bucket/p", variables).unwrap();
    let told = place.list("marks").unwrap_err().to_string();
    assert!(told.contains("no key was found for the bucket bucket at https://127."), "{told}");
    assert!(told.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{told}");
}

#[test]
fn endpoint_without_encryption_must_be_allowed() {
    let plain = ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1");
    let refused = open("s3://bucket", &[plain]).unwrap_err().to_string();
    assert!(refused.contains("AWS_ALLOW_HTTP"), "{refused}");
    assert!(open("s3://bucket", &[plain, ("AWS_ALLOW_HTTP", "no")]).is_err());
    assert!(open("s3://bucket", &[plain, ("AWS_ALLOW_HTTP", "True")]).is_ok());
    let with_key = ("AWS_ENDPOINT_URL", "https://KEY:SECRET@host");
    let refused = open("s3://bucket", &[with_key]).unwrap_err().to_string();
    assert!(!refused.contains("SECRET"), "{refused}");
}

//! One member of etcd that encrypts, asks for certificates and has users. It also listens without
//! any of that, for the tests themselves.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use pinpriq_cluster::etcd::{Etcd, EtcdOptions, EtcdUser};
use pinpriq_testing::engines::has_etcd;
use pinpriq_tls::{Identity, Pem, Roots, Tls, Trust};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::authority::{Authority, Papers, Validity};
use crate::etcd::cluster::Client;
use crate::etcd::registry::base64;
use crate::remote::engines::runtime;

/// How often a member is tried until it must work, and how long is waited in between.
const TRIES: u32 = 600;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The password of the user `anna`, who may use the keys of the cluster `test`.
pub(crate) const PASSWORD: &str = "s3cr3t of anna";

/// See the start of this file.
pub(crate) struct Secure {
    process: Child,
    directory: TempDir,
    pub(crate) authority: Authority,
    /// Where it listens without encryption.
    plain: SocketAddr,
    /// Where it listens with encryption.
    port: u16,
    runtime: Handle,
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Asks a member in JSON, and returns what it says.
pub(crate) fn gateway(member: SocketAddr, path: &str, body: &str) -> String {
    gateway_with("none", member, path, body)
}

/// Does so with a token.
fn gateway_with(token: &str, member: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(member).unwrap();
    let length = body.len();
    let authorization = match token {
        "none" => String::new(),
        token => format!("Authorization: {token}\r\n"),
    };
    let request = format!(
        "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\
         {authorization}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Secure {
    /// Starts a member whose tokens end after a second, and which has a certificate for 127.0.0.1.
    /// None if etcd is not installed.
    pub(crate) fn start() -> Option<Self> {
        if !has_etcd() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        // They are free once the listeners are dropped.
        let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [plain, secure, peer] = listeners.each_ref().map(|it| it.local_addr().unwrap());
        drop(listeners);
        let authority = Authority::new("authority of the tests");
        write(path("ca.pem"), &authority.certificate);
        write(path("tokens"), "the key that signs tokens");
        let papers = authority.sign("etcd", &["127.0.0.1"]);
        write(path("cert.pem"), &papers.certificate);
        write(path("key.pem"), &papers.key);
        let mut command = Command::new("etcd");
        command.args(["--name=m0", "--client-cert-auth"]);
        for (name, value) in [
            ("data-dir", path("data")),
            ("listen-client-urls", format!("http://{plain},https://{secure}")),
            ("advertise-client-urls", format!("https://{secure}")),
            ("listen-peer-urls", format!("http://{peer}")),
            ("initial-advertise-peer-urls", format!("http://{peer}")),
            ("initial-cluster", format!("m0=http://{peer}")),
            ("cert-file", path("cert.pem")),
            ("key-file", path("key.pem")),
            ("trusted-ca-file", path("ca.pem")),
            ("auth-token", format!("jwt,priv-key={},sign-method=HS256,ttl=1s", path("tokens"))),
            ("bcrypt-cost", "4".to_owned()),
        ] {
            command.arg(format!("--{name}={value}"));
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let port = secure.port();
        let runtime = runtime();
        let mut secure = Self { process, directory, authority, plain, port, runtime };
        secure.wait();
        secure.add_users();
        Some(secure)
    }

    /// Waits until it answers.
    fn wait(&mut self) {
        for _ in 0..TRIES {
            assert!(self.process.try_wait().unwrap().is_none(), "etcd has ended");
            let is_there = TcpStream::connect(self.plain).is_ok();
            if is_there && gateway(self.plain, "kv/range", r#"{"key":"YQ=="}"#).contains("200 OK") {
                return;
            }
            thread::park_timeout(BETWEEN_TRIES);
        }
        panic!("etcd does not answer");
    }

    /// Anna may use what the cluster `test` has, and Bert may use nothing.
    fn add_users(&self) {
        let (start, end) = (base64(b"pinpriq/test/"), base64(b"pinpriq/test0"));
        let grant = format!(
            r#"{{"name":"nodes","perm":
                {{"permType":"READWRITE","key":"{start}","range_end":"{end}"}}}}"#
        );
        let user = |name: &str| format!(r#"{{"name":"{name}","password":"{PASSWORD}"}}"#);
        for (path, body) in [
            ("user/add", user("root")),
            ("user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
            ("user/add", user("anna")),
            ("user/add", user("bert")),
            ("role/add", r#"{"name":"nodes"}"#.to_owned()),
            ("role/grant", grant),
            ("user/grant", r#"{"user":"anna","role":"nodes"}"#.to_owned()),
            ("enable", "{}".to_owned()),
        ] {
            let answer = gateway(self.plain, &format!("auth/{path}"), &body);
            assert!(answer.contains("200 OK"), "{path}: {answer}");
        }
    }

    /// Changes the rights of a user, which makes all tokens old.
    ///
    /// The token of root lives for a second at most, so it may end before it is used.
    pub(crate) fn change_rights(&self) {
        let root = format!(r#"{{"name":"root","password":"{PASSWORD}"}}"#);
        for _ in 0..TRIES {
            let answer = gateway(self.plain, "auth/authenticate", &root);
            let token = answer.split_once(r#""token":""#).unwrap().1.split('"').next().unwrap();
            let answer = gateway_with(token, self.plain, "auth/role/add", r#"{"name":"other"}"#);
            if answer.contains("200 OK") {
                return;
            }
            assert!(answer.contains("invalid auth token"), "{answer}");
        }
        panic!("no token was good for long enough");
    }

    /// Gives it another certificate, which it uses for connections from now on.
    pub(crate) fn change_certificate(&self, validity: Validity) {
        let Papers { certificate, key } = self.authority.sign_for(validity, "etcd", &["127.0.0.1"]);
        let path = |name: &str| -> PathBuf { self.directory.path().join(name) };
        write(path("cert.pem"), &certificate);
        write(path("key.pem"), &key);
    }

    /// How it is reached by this host, with a certificate for a user of this name, if there is one.
    pub(crate) fn options(&self, host: &str, own: Option<&str>) -> EtcdOptions {
        let trust = Trust::Host(Roots::Pem(pem("ca.pem", &self.authority.certificate)));
        let identity = own.map(|name| {
            let papers = self.authority.sign(name, &[]);
            Identity {
                certificates: pem("own.pem", &papers.certificate),
                key: pem("own.key", &papers.key),
            }
        });
        EtcdOptions {
            tls: Some(Tls::new(&trust, identity).unwrap()),
            ..EtcdOptions::new("test", vec![format!("https://{host}:{}", self.port)])
        }
    }

    pub(crate) fn client(&self, options: EtcdOptions) -> Client {
        Client { etcd: Etcd::new(options).unwrap(), runtime: self.runtime.clone() }
    }

    /// A client of a user with this password.
    pub(crate) fn signed_in(&self, name: &str, password: &str) -> Client {
        let (name, password) = (name.to_owned(), password.to_owned());
        let user = Some(EtcdUser { name, password });
        self.client(EtcdOptions { user, ..self.options("127.0.0.1", Some("node")) })
    }
}

#[expect(clippy::disallowed_methods, reason = "a test writes the files of etcd")]
fn write(path: impl AsRef<Path>, text: &str) {
    std::fs::write(path, text).unwrap();
}

pub(crate) fn pem(name: &str, text: &str) -> Pem {
    Pem { name: name.to_owned(), text: text.as_bytes().to_vec() }
}

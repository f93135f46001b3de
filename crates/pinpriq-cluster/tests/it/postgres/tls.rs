//! A server that encrypts and asks for passwords and certificates: everything works with them, and
//! who may not connect learns why.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pinpriq_cluster::postgres::{Encryption, PostgresOptions};
use pinpriq_store::ledger::Call;
use pinpriq_testing::engines::PostgresPrograms;
use pinpriq_tls::{Identity, Pem, Roots, Tls, Trust};
use tempfile::TempDir;

use crate::authority::{Authority, Papers, Validity};
use crate::postgres::engine::Engine;
use crate::remote::engines::{ask, run_ledger_suite};

const PASSWORD: &str = "s3cr3t of anna";

/// Anna needs a password and a certificate, bert a password only, and both need encryption.
const RULES: &str = "\
    hostssl all anna all scram-sha-256 clientcert=verify-full
    hostssl all bert all scram-sha-256
    host all pinpriq all trust
";

/// See the start of this file. Its certificate is for 127.0.0.1.
struct Secure {
    engine: Engine,
    directory: TempDir,
    authority: Authority,
}

fn pem(name: &str, text: &str) -> Pem {
    Pem { name: name.to_owned(), text: text.as_bytes().to_vec() }
}

impl Secure {
    fn start() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let authority = Authority::new("authority of the tests");
        let path = |name: &str| directory.path().join(name);
        write(&path("ca.pem"), &authority.certificate);
        write(&path("rules"), RULES);
        let papers = authority.sign("server", &["127.0.0.1"]);
        write(&path("cert.pem"), &papers.certificate);
        write(&path("key.pem"), &papers.key);
        let setting = |name: &str, file: &str| format!("{name}={}", path(file).display());
        let files = [
            setting("ssl_cert_file", "cert.pem"),
            setting("ssl_key_file", "key.pem"),
            setting("ssl_ca_file", "ca.pem"),
            setting("hba_file", "rules"),
        ];
        let mut settings = vec!["ssl=on", "password_encryption=scram-sha-256"];
        settings.extend(files.iter().map(String::as_str));
        PostgresPrograms::find_or_skip()?.give(directory.path()).unwrap();
        let engine = Engine::start(&settings)?;
        let client = engine.client();
        for name in ["anna", "bert"] {
            engine.sql(&client, &format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'"));
            engine.sql(&client, &format!("GRANT CREATE ON DATABASE postgres TO {name}"));
        }
        Some(Self { engine, directory, authority })
    }

    /// Gives it another certificate, which it uses for connections from now on.
    fn change_certificate(&self, validity: Validity) {
        let Papers { certificate, key } =
            self.authority.sign_for(validity, "server", &["127.0.0.1"]);
        write(&self.directory.path().join("cert.pem"), &certificate);
        write(&self.directory.path().join("key.pem"), &key);
        self.engine.programs.give(self.directory.path()).unwrap();
        let client = self.engine.client();
        self.engine.sql(&client, "SELECT pg_reload_conf()");
    }

    fn roots(&self) -> Roots {
        Roots::Pem(pem("ca.pem", &self.authority.certificate))
    }

    /// A certificate for a user of this name.
    fn identity(&self, name: &str) -> Identity {
        let papers = self.authority.sign(name, &[]);
        let certificates = pem("own.pem", &papers.certificate);
        Identity { certificates, key: pem("own.key", &papers.key) }
    }

    /// How a user connects to this host, whom it trusts, and what it shows.
    fn options(&self, user: &str, host: &str, trust: &Trust, own: Option<&str>) -> PostgresOptions {
        let tls = Tls::new(trust, own.map(|name| self.identity(name))).unwrap();
        let address = format!("host={host} port={} user={user} dbname=postgres", self.engine.port);
        PostgresOptions {
            password: Some(PASSWORD.to_owned()),
            encryption: Encryption::Required(tls),
            ..PostgresOptions::new(&address, user, 1 << 40)
        }
    }

    /// Why a connection is refused.
    #[track_caller]
    fn refusal(&self, options: PostgresOptions) -> String {
        let refusal = self.engine.connect(options).err().unwrap().to_string();
        assert!(!refusal.contains(PASSWORD), "{refusal}");
        refusal
    }
}

/// Writes a file that only its owner can read.
#[expect(clippy::disallowed_methods, reason = "a test writes the files of its server")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn it_passes_all_cases_encrypted_and_signed_in() {
    let Some(secure) = Secure::start() else { return };
    let trust = Trust::Host(secure.roots());
    let mut options = secure.options("anna", "127.0.0.1", &trust, Some("anna"));
    // The server takes the password only if both see the same certificate.
    options.address.push_str(" channel_binding=require");
    let (postgres, _) = secure.engine.connect(options).unwrap();
    let looker = secure.engine.client();
    let count = "SELECT count(*) > 0 FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                 WHERE s.ssl AND a.usename = 'anna'";
    let mut ledger = secure.engine.ledger(&postgres, 1_000, 1);
    ask(&mut *ledger, Call::Status);
    assert_eq!(secure.engine.sql(&looker, count).as_deref(), Some("t"));
    run_ledger_suite(|shard, writer| secure.engine.ledger(&postgres, shard, writer.0));
}

#[test]
fn a_host_is_believed_as_far_as_was_asked() {
    let Some(secure) = Secure::start() else { return };
    let authority = Trust::Authority(secure.roots());
    let other = Authority::new("another authority");
    let other = Roots::Pem(pem("ca.pem", &other.certificate));
    for (host, trust, sentence) in [
        ("localhost", Trust::Anybody, None),
        ("localhost", authority, None),
        ("localhost", Trust::Host(secure.roots()), Some("is not for the host localhost")),
        ("127.0.0.1", Trust::Host(secure.roots()), None),
        ("127.0.0.1", Trust::Authority(other.clone()), Some("the right one with sslrootcert")),
        ("127.0.0.1", Trust::Host(other), Some("the right one with sslrootcert")),
    ] {
        let options = secure.options("bert", host, &trust, None);
        match sentence {
            None => _ = secure.engine.connect(options).unwrap(),
            Some(sentence) => {
                let refusal = secure.refusal(options);
                assert!(refusal.contains(sentence), "{refusal}");
            }
        }
    }
    for (validity, sentence) in
        [(Validity::Past, "has expired"), (Validity::Future, "is not valid yet")]
    {
        secure.change_certificate(validity);
        let options = secure.options("bert", "127.0.0.1", &Trust::Host(secure.roots()), None);
        // The server reads its files some time after the signal.
        let refusal = (0..200).find_map(|_| {
            let refusal = secure.engine.connect(options.clone()).err().map(|it| it.to_string());
            refusal.filter(|it| it.contains(sentence)).or_else(|| {
                std::thread::park_timeout(std::time::Duration::from_millis(20));
                None
            })
        });
        assert!(refusal.is_some(), "{sentence}");
    }
}

#[test]
fn who_may_not_connect_is_told_why() {
    let Some(secure) = Secure::start() else { return };
    let trust = Trust::Host(secure.roots());
    let with = |user, own| secure.options(user, "127.0.0.1", &trust, own);
    let wrong = PostgresOptions { password: Some("wrong".to_owned()), ..with("bert", None) };
    let none = PostgresOptions { password: None, ..with("bert", None) };
    let plain = PostgresOptions { encryption: Encryption::Off, ..with("bert", None) };
    for (options, sentence) in [
        (wrong, "password authentication failed for user \"bert\""),
        (none, "password missing"),
        (plain, "no pg_hba.conf entry"),
        (with("anna", None), "connection requires a valid client certificate"),
        (with("anna", Some("bert")), "authentication failed for user \"anna\""),
    ] {
        let refusal = secure.refusal(options);
        assert!(refusal.contains(sentence), "{refusal}");
    }
    let stranger = Authority::new("another authority").sign("anna", &[]);
    let stranger = Identity {
        certificates: pem("own.pem", &stranger.certificate),
        key: pem("own.key", &stranger.key),
    };
    let tls = Tls::new(&trust, Some(stranger)).unwrap();
    let options = PostgresOptions { encryption: Encryption::Required(tls), ..with("anna", None) };
    let refusal = secure.refusal(options);
    assert!(refusal.contains("does not accept the certificate of this client"), "{refusal}");
}

#[test]
fn a_server_without_encryption_is_used_only_if_that_was_allowed() {
    let Some(engine) = Engine::start(&[]) else { return };
    let tls = Tls::new(&Trust::Anybody, None).unwrap();
    let encryption = Encryption::IfOffered(tls.clone());
    engine.connect(PostgresOptions { encryption, ..engine.options("s") }).unwrap();
    let encryption = Encryption::Required(tls);
    let refused = engine.connect(PostgresOptions { encryption, ..engine.options("s") });
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("server does not support TLS"), "{refused}");
}

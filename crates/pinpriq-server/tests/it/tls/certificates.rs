//! Which certificates are shown, and what happens when their files change.

use pinpriq_server::config::{Config, TlsClients};

use super::{HTTP, RESP, Stage, Talk, WIRE, on_stage, on_usual_stage};
use crate::authority::{Authority, Validity};
use crate::line::{Encryption, Line};
use crate::people::{remove, write};

/// Has the server ask its clients for certificates of its own authority.
pub(super) fn asking(required: bool) -> impl FnOnce(&mut Config, &Encryption) {
    move |config, encryption| {
        let authorities = encryption.folder().join("clients.pem");
        write(&authorities, &encryption.authority.certificate);
        config.tls.as_mut().unwrap().clients = Some(TlsClients { authorities, required });
    }
}

/// Returns the certificate that a server shows.
async fn shown(stage: &Stage, door: usize) -> Vec<u8> {
    let Talk(line) = stage.connect(door, None).await;
    let Line::Encrypted(stream) = line else { unreachable!() };
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn a_client_needs_a_certificate_where_one_is_required() {
    on_stage(asking(true), async |stage| {
        let authority = &stage.encryption.authority;
        assert!(stage.lets_in(Some(&authority.sign("ana", &[]))).await);
        assert!(!stage.lets_in(None).await);
        assert!(!stage.lets_in(Some(&Authority::new("others").sign("ana", &[]))).await);
        for validity in [Validity::Past, Validity::Future] {
            let papers = authority.sign_for(validity, "ana", &[]);
            assert!(!stage.lets_in(Some(&papers)).await, "{validity:?}");
        }
    });
    on_stage(asking(false), async |stage| {
        assert!(stage.lets_in(Some(&stage.encryption.authority.sign("ana", &[]))).await);
        assert!(stage.lets_in(None).await);
        assert!(!stage.lets_in(Some(&Authority::new("others").sign("ana", &[]))).await);
    });
}

#[test]
fn files_that_change_are_read_again_and_connections_go_on() {
    on_usual_stage(async |stage| {
        let mut talk = stage.connect(RESP, None).await;
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        let first = shown(stage, RESP).await;
        let papers = stage.encryption.authority.sign("second", &["localhost"]);
        // The certificate alone does not fit the key, so that nothing changes.
        let (pem, key) = ("server.pem", "server.key");
        write(&stage.encryption.folder().join(pem), &papers.certificate);
        stage.advance(1_000);
        for _ in 0..20 {
            assert_eq!(shown(stage, RESP).await, first);
        }
        write(&stage.encryption.folder().join(key), &papers.key);
        for door in [RESP, WIRE, HTTP] {
            while shown(stage, door).await == first {
                stage.advance(1_000);
            }
        }
        remove(&stage.encryption.folder().join(key));
        stage.advance(1_000);
        let second = shown(stage, RESP).await;
        stage.advance(1_000);
        assert_eq!(shown(stage, RESP).await, second);
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
    });
}

#[test]
fn a_change_under_load_ends_no_connection() {
    on_usual_stage(async |stage| {
        let mut talks = Vec::new();
        for _ in 0..20 {
            talks.push(stage.connect(RESP, None).await);
        }
        for round in 0..5 {
            let papers = stage.encryption.authority.sign(&round.to_string(), &["localhost"]);
            stage.encryption.replace(&papers);
            stage.advance(1_000);
            for talk in &mut talks {
                talk.expect(b"ECHO x\r\n", "$1\r\nx\r\n").await;
            }
            stage.connect(RESP, None).await.expect(b"PING\r\n", "+PONG\r\n").await;
        }
    });
}

#[test]
fn a_server_does_not_start_with_files_that_do_not_fit() {
    let refuses = |change: fn(&Encryption)| {
        let outcome = std::panic::catch_unwind(|| {
            on_stage(|_, encryption| change(encryption), async |_| {});
        });
        let told = outcome.unwrap_err();
        told.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let told = refuses(|encryption| remove(&encryption.folder().join("server.key")));
    assert!(told.contains("server.key cannot be read"), "{told}");
    let told = refuses(|encryption| {
        let other = encryption.authority.sign("other", &["localhost"]);
        write(&encryption.folder().join("server.key"), &other.key);
    });
    assert!(told.contains("server.pem and the key in"), "{told}");
    let told = refuses(|encryption| {
        write(&encryption.folder().join("server.pem"), "nothing");
    });
    assert!(told.contains("holds no certificate in PEM"), "{told}");
}

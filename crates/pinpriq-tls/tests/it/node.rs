//! Handshakes of two nodes in memory.

use std::sync::Arc;

use pinpriq_tls::{NodeKey, Tls, Trust, fingerprint, is_other_node};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, Error, ProtocolVersion, ServerConnection,
};

/// Moves bytes from one side to the other.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

/// Has this client dial a node. Returns both sides after the handshake.
fn dial(config: Arc<ClientConfig>, node: &NodeKey) -> Result<[Connection; 2], Error> {
    let name = ServerName::try_from("node").unwrap();
    let mut dialer = Connection::from(ClientConnection::new(config, name).unwrap());
    let mut acceptor = Connection::from(ServerConnection::new(node.accepting()).unwrap());
    while dialer.is_handshaking() || acceptor.is_handshaking() {
        pass(&mut dialer, &mut acceptor)?;
        pass(&mut acceptor, &mut dialer)?;
    }
    Ok([dialer, acceptor])
}

#[test]
fn each_side_learns_the_certificate_of_the_other() {
    let [one, other] = [(); 2].map(|()| NodeKey::generate().unwrap());
    assert_ne!(one.fingerprint(), other.fingerprint(), "each node has its own key");
    let sides = dial(one.dialing(other.fingerprint()), &other).unwrap();
    for (side, key) in sides.iter().zip([&other, &one]) {
        let [certificate] = side.peer_certificates().unwrap() else { panic!("one certificate") };
        assert_eq!(fingerprint(certificate), key.fingerprint());
        assert_eq!(side.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    }
}

#[test]
fn no_other_node_than_the_one_that_was_dialed_is_accepted() {
    let [one, other] = [(); 2].map(|()| NodeKey::generate().unwrap());
    let error = dial(one.dialing(one.fingerprint()), &other).unwrap_err();
    assert!(is_other_node(&error), "{error}");
    let mut near = other.fingerprint();
    near[31] ^= 1;
    assert!(is_other_node(&dial(one.dialing(near), &other).unwrap_err()));
}

#[test]
fn clients_that_are_no_nodes_are_refused() {
    let node = NodeKey::generate().unwrap();
    let anybody = Arc::new(Tls::new(&Trust::Anybody, None).unwrap().config());
    let error = dial(anybody, &node).unwrap_err();
    assert!(!is_other_node(&error), "{error}");
}

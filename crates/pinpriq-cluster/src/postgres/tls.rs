//! Encrypting a connection, and telling the server by which certificate it was known, so that a
//! password proves itself to this server only (channel binding). Who is trusted is decided in
//! `pinpriq-remote`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pinpriq_tls::Tls;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// What newer servers want to be asked for. Older ones do not look at it.
const PROTOCOL: &[u8] = b"postgresql";

/// Encrypts connections, or refuses to.
#[derive(Clone)]
pub(crate) struct Encrypter(Option<Arc<ClientConfig>>);

impl Encrypter {
    /// Without `tls`, every connection that should be encrypted fails.
    pub(crate) fn new(tls: Option<&Tls>) -> Self {
        Self(tls.map(|tls| {
            let mut config = tls.config();
            config.alpn_protocols = vec![PROTOCOL.to_vec()];
            Arc::new(config)
        }))
    }
}

impl MakeTlsConnect<Socket> for Encrypter {
    type Stream = Encrypted;
    type TlsConnect = Encryption;
    type Error = io::Error;

    /// It is called for connections that are not encrypted too, so it refuses nothing yet.
    fn make_tls_connect(&mut self, host: &str) -> Result<Encryption, io::Error> {
        Ok(Encryption { config: self.0.clone(), host: host.to_owned() })
    }
}

/// What encrypts one connection.
pub(crate) struct Encryption {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Encryption {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, io::Error>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let Self { config, host } = self;
        Box::pin(async move {
            let config = config.ok_or_else(|| io::Error::other("TLS is not used"))?;
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, socket).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted(Box<client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, connection) = self.0.get_ref();
        let certificate = connection.peer_certificates().and_then(|them| them.first());
        let digest = certificate.and_then(|certificate| digest(certificate));
        digest.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}

/// Returns the digest of a certificate in DER for channel binding (RFC 5929, tls-server-end-point):
/// by the hash of its own signature, or SHA-256 if that is an old one. None if the kind of
/// signature has none or is not known, and then there is no channel binding.
fn digest(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { what is signed, SEQUENCE { the kind of signature, … }, … }
    let (whole, _) = der(certificate, 0x30)?;
    let (_signed, rest) = der(whole, 0x30)?;
    let (algorithm, _) = der(rest, 0x30)?;
    let (kind, _) = der(algorithm, 0x06)?;
    Some(match kind {
        // RSA (PKCS #1) with MD5, SHA-1 and SHA-256, ECDSA with SHA-1 and SHA-256.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 4 | 5 | 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 1]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 2] => Sha256::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 3] => Sha384::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 4] => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// Splits off the first value of DER, which must have this tag. Returns its contents and the rest.
fn der(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = if length < 0x80 {
        (usize::from(length), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
        let is_short = (1..=4).contains(&digits.len());
        let number = digits.iter().fold(0, |all, &digit| (all << 8) | usize::from(digit));
        (is_short.then_some(number)?, rest)
    };
    if first == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256, Sha384, Sha512};

    use super::{der, digest};

    /// What stands in for a certificate: something that is signed, and a kind of signature.
    fn certificate(kind: &[u8]) -> Vec<u8> {
        let mut algorithm = vec![6, u8::try_from(kind.len()).unwrap_or(0)];
        algorithm.extend_from_slice(kind);
        algorithm.extend_from_slice(&[5, 0]);
        let signed = [&[0x30, 0x81, 200][..], &[7; 200]].concat();
        let mut whole = signed;
        whole.extend([0x30, u8::try_from(algorithm.len()).unwrap_or(0)]);
        whole.extend(algorithm);
        let length = u16::try_from(whole.len()).unwrap_or(0).to_be_bytes();
        [&[0x30, 0x82][..], &length, &whole].concat()
    }

    #[test]
    fn the_signature_of_a_certificate_decides_the_digest() {
        let rsa = |last| certificate(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last]);
        let ecdsa = |last| certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last]);
        for old in [rsa(4), rsa(5), rsa(11), ecdsa(2)] {
            assert_eq!(digest(&old), Some(Sha256::digest(&old).to_vec()));
        }
        for middle in [rsa(12), ecdsa(3)] {
            assert_eq!(digest(&middle), Some(Sha384::digest(&middle).to_vec()));
        }
        for long in [rsa(13), ecdsa(4)] {
            assert_eq!(digest(&long), Some(Sha512::digest(&long).to_vec()));
        }
        for unknown in [rsa(10), ecdsa(9), certificate(&[0x2b, 0x65, 0x70])] {
            assert_eq!(digest(&unknown), None);
        }
    }

    #[test]
    fn odd_bytes_have_no_digest() {
        let whole = certificate(&[0x2b]);
        for length in 0..whole.len() - 1 {
            assert_eq!(digest(&whole[..length]), None);
        }
        assert_eq!(der(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], 0x30), None);
        assert_eq!(der(&[0x30, 0x80], 0x30), None);
        assert_eq!(der(&[0x30, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0x30), None);
        assert_eq!(der(&[0x31, 0], 0x30), None);
    }
}

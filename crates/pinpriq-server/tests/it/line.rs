//! The connection below the clients of all doors: plain, or encrypted in tests that say so.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pinpriq_server::Server;
use pinpriq_server::config::{Config, DoorName, Listener, TlsOptions};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::authority::{Authority, Papers};
use crate::people::write;

thread_local! {
    /// What encrypts the connections of the test that runs on this thread, if something does.
    static ENCRYPTED: RefCell<Option<Encryption>> = const { RefCell::new(None) };
}

/// A certificate of the server, in files, and who has signed it.
pub(crate) struct Encryption {
    pub(crate) authority: Authority,
    folder: TempDir,
}

impl Encryption {
    pub(crate) fn new() -> Self {
        let own =
            Self { authority: Authority::new("of servers"), folder: tempfile::tempdir().unwrap() };
        own.replace(&own.authority.sign("server", &["localhost", "127.0.0.1"]));
        own
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces the certificate and the key of the server.
    pub(crate) fn replace(&self, papers: &Papers) {
        write(&self.folder().join("server.pem"), &papers.certificate);
        write(&self.folder().join("server.key"), &papers.key);
    }

    /// Returns what a server needs that encrypts at these doors.
    pub(crate) fn options(&self, doors: &[DoorName]) -> TlsOptions {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = |door: &DoorName| Listener { door: *door, address: any_port };
        TlsOptions {
            listeners: doors.iter().map(listener).collect(),
            certificate: self.folder().join("server.pem"),
            key: self.folder().join("server.key"),
            clients: None,
        }
    }

    /// Returns whom its clients trust.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let authority = self.authority.certificate.as_bytes();
        roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
        roots
    }

    /// Returns how a client encrypts that trusts this authority and may have papers of its own.
    pub(crate) fn client(&self, own: Option<&Papers>) -> ClientConfig {
        let roots = self.roots();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let Some(own) = own else { return builder.with_no_client_auth() };
        let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    }
}

/// Runs these tests of a module once more, with clients that encrypt.
macro_rules! encrypted_too {
    ($($name:ident)*) => {
        mod encrypted {
            $(
                #[test]
                fn $name() {
                    $crate::line::over_tls(super::$name);
                }
            )*
        }
    };
}

pub(crate) use encrypted_too;

/// Runs a test whose clients encrypt.
pub(crate) fn over_tls(test: impl FnOnce()) {
    ENCRYPTED.set(Some(Encryption::new()));
    test();
    ENCRYPTED.set(None);
}

/// Adds to a configuration what the clients of this test need.
pub(crate) fn encrypted(config: Config) -> Config {
    let tls = ENCRYPTED.with_borrow(|own| {
        own.as_ref().map(|own| own.options(&[DoorName::Pinpriq, DoorName::Resp]))
    });
    Config { tls, ..config }
}

/// Returns where the clients of this test connect to this door.
pub(crate) fn address(server: &Server, door: DoorName) -> Option<SocketAddr> {
    let is_encrypted = ENCRYPTED.with_borrow(Option::is_some);
    if is_encrypted { server.tls_address(door) } else { server.address(door) }
}

/// One connection. What is below the encryption can be reached too.
pub(crate) enum Line {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Line {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream).await
    }

    /// Returns the connection over a socket, encrypted if the test says so.
    pub(crate) async fn over(stream: TcpStream) -> Self {
        let config = ENCRYPTED.with_borrow(|own| own.as_ref().map(|own| own.client(None)));
        match config {
            None => Self::Plain(stream),
            Some(config) => Self::encrypted(stream, config).await.unwrap(),
        }
    }

    /// Returns a connection that is encrypted like this.
    pub(crate) async fn encrypted(stream: TcpStream, config: ClientConfig) -> io::Result<Self> {
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self::Encrypted(Box::new(connector.connect(name, stream).await?)))
    }

    /// Reads what has arrived.
    pub(crate) fn read_now(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let read = pin!(self.read_buf(into));
        match read.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => read,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Deref for Line {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Encrypted(stream) => stream.get_ref().0,
        }
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Encrypted(stream) => stream.get_mut().0,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(task, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(task, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(task, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(task, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(task),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(task),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(task),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(task),
        }
    }
}

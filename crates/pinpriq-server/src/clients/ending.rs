//! The reasons why connections end. `home::client` decides which reason applies, and `facts::tally`
//! counts them.

/// What is said about a client that encrypts where nothing is decrypted.
pub(crate) const SPEAKS_TLS: &str = "a client speaks TLS to a port without TLS";

/// The first bytes of a client that speaks TLS.
pub(crate) const TLS_BEGINS: [u8; 2] = [0x16, 0x03];

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Ending {
    /// The client has closed its side.
    #[letter(1)]
    Closed,
    /// The client sent `QUIT`.
    #[letter(2)]
    Quit,
    /// The connection broke.
    #[letter(3)]
    Broken,
    /// A client sent `CLIENT KILL`.
    #[letter(4)]
    Killed,
    /// A request did not arrive in time.
    #[letter(5)]
    Late,
    /// The bytes were no request.
    #[letter(6)]
    Malformed,
    /// A request was refused in a protocol that cannot say so.
    #[letter(7)]
    Refused,
    /// The client did not read its replies, which kept old files on the disk.
    #[letter(8)]
    Unread,
    /// The store failed, and the protocol cannot say so.
    #[letter(9)]
    StoreFailed,
    /// The server has stopped.
    #[letter(10)]
    Stopped,
    /// The server had as many connections as allowed.
    #[letter(11)]
    TooMany,
    /// It is not known what became of a request, and the protocol cannot say so.
    #[letter(12)]
    Unknown,
    /// Its user may no longer do what it does.
    #[letter(13)]
    Denied,
    /// The connection could not be encrypted.
    #[letter(14)]
    Handshake,
}

impl Ending {
    /// All of them.
    pub(crate) const ALL: [Self; 14] = [
        Self::Closed,
        Self::Quit,
        Self::Broken,
        Self::Killed,
        Self::Late,
        Self::Malformed,
        Self::Refused,
        Self::Unread,
        Self::StoreFailed,
        Self::Stopped,
        Self::TooMany,
        Self::Unknown,
        Self::Denied,
        Self::Handshake,
    ];

    /// Returns the stable word for programs.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Quit => "quit",
            Self::Broken => "broken",
            Self::Killed => "killed",
            Self::Late => "late",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::Unread => "unread",
            Self::StoreFailed => "store_failed",
            Self::Stopped => "stopped",
            Self::TooMany => "too_many",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::Handshake => "handshake",
        }
    }

    /// Returns its meaning, for the documentation.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Closed => "the client closed its side",
            Self::Quit => "the client sent `QUIT`",
            Self::Broken => "the connection broke: it was reset, or the host of the client is gone",
            Self::Killed => "a client sent `CLIENT KILL`",
            Self::Late => "a request did not arrive within `--frame-timeout-ms`",
            Self::Malformed => "the input was malformed",
            Self::Refused => "a request was refused at the pinpriq door, which has no refusals",
            Self::Unread => "the client did not read its replies, which kept old files on the disk",
            Self::StoreFailed => "the disk failed, and the pinpriq door cannot say so",
            Self::Stopped => "the server stopped",
            Self::TooMany => "closed at once: there were `--connections-max` already",
            Self::Unknown => {
                "the owner of a shard has changed, and the pinpriq door cannot say that it is not \
                 known what became of a request"
            }
            Self::Denied => "its user may no longer take from a queue that it has subscribed to",
            Self::Handshake => "there was no TLS handshake, or none in time",
        }
    }
}

//! The reasons why connections end. `home::client` decides which reason applies, and `facts::tally`
//! counts them.

/// What is said about a client that encrypts where nothing is decrypted.
pub(crate) const SPEAKS_TLS: &str = "a client speaks TLS to a port without TLS";

/// The first bytes of a client that speaks TLS.
pub(crate) const TLS_BEGINS: [u8; 2] = [0x16, 0x03];

pinpriq_proto::worded! {
    /// Why a connection has ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_proto::letters::Letter)]
    #[letter(unsampled)]
    pub(crate) enum Ending {
        /// The client has closed its side.
        #[letter(1)]
        Closed => "closed",
        /// The client sent `QUIT`.
        #[letter(2)]
        Quit => "quit",
        /// The connection broke.
        #[letter(3)]
        Broken => "broken",
        /// A client sent `CLIENT KILL`.
        #[letter(4)]
        Killed => "killed",
        /// A request did not arrive in time.
        #[letter(5)]
        Late => "late",
        /// The bytes were no request.
        #[letter(6)]
        Malformed => "malformed",
        /// A request was refused in a protocol that cannot say so.
        #[letter(7)]
        Refused => "refused",
        /// The client did not read its replies, which kept old files on the disk, or were too many.
        #[letter(8)]
        Unread => "unread",
        /// The store failed, and the protocol cannot say so.
        #[letter(9)]
        StoreFailed => "store_failed",
        /// The server has stopped.
        #[letter(10)]
        Stopped => "stopped",
        /// The server had as many connections as allowed.
        #[letter(11)]
        TooMany => "too_many",
        /// It is not known what became of a request, and the protocol cannot say so.
        #[letter(12)]
        Unknown => "unknown",
        /// Its user may no longer do what it does.
        #[letter(13)]
        Denied => "denied",
        /// The connection could not be encrypted.
        #[letter(14)]
        Handshake => "handshake",
    }

    /// Returns the stable word for programs.
    fn word -> &'static str
}

//! The bugs about encrypted connections.

/// Lists these bugs, and those of users and of the wire, after others.
macro_rules! with_those_of_access {
    ($($others:tt)*) => {
        with_those_of_users! {
            $($others)*
            TlsTakenForRequests "tls-taken-for-requests"
                "A client that speaks TLS to a plain port is answered like one that asks."
                [Server("tls::handshakes::a_handshake_at")]
            PlainTextAnswered "plain-text-answered"
                "A client that speaks plain text to a TLS port is answered."
                [Server("tls::handshakes::plain")]
            HandshakeEndless "handshake-endless"
                "A handshake may take any time."
                [Server("tls::handshakes::a_handshake_that")]
            DecryptedLeftLying "decrypted-left-lying"
                "What came with the end of a handshake is read when more comes."
                [Server("tls::handshakes::requests_that")]
            CountedBeforeLeaving "counted-before-leaving"
                "Bytes count as sent before they have left encrypted."
                [Server("requeue::encrypted::")]
            EndNotAnnounced "end-not-announced"
                "An encrypted connection ends without telling its client that this is the end."
                [Server("ending::encrypted::")]
            TicketsForTheSilent "tickets-for-the-silent"
                "Who never reads is sent tickets, and loses what it has sent when it closes."
                [Server("resp::closing::encrypted::")]
            CertificateNotReplaced "certificate-not-replaced"
                "A certificate is not replaced when its file is."
                [Server("tls::certificates::files_that")]
            CertificateNotRequired "certificate-not-required"
                "A client without a certificate is let in where one is required."
                [Server("tls::certificates::a_client_needs")]
            StrangerActsAsAnonymous "stranger-acts-as-anonymous"
                "A client whose certificate is that of no user acts as anonymous."
                [Server("tls::people::")]
            CertificateForgotten "certificate-forgotten"
                "RESET forgets whose certificate the client has shown."
                [Server("tls::people::")]
            CookieNotSecure "cookie-not-secure"
                "A browser may send the cookie of an encrypted connection over a plain one."
                [Server("tls::people::")]
        }
    };
}

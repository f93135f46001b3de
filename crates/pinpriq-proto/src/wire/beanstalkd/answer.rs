//! The answers of a server, except for documents.
//!
//! Every function appends one whole answer. When which answer is given is not known here.

use crate::wire::resp::put_unsigned;

worded! {
    /// Why bytes are no request. Each has its answer, and the connection continues.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Fault {
        /// The line is not that of the command that it begins with, or is too long.
        BadFormat => b"BAD_FORMAT\r\n",
        /// The line begins with no command.
        UnknownCommand => b"UNKNOWN_COMMAND\r\n",
        /// No CR LF follows the body of a job.
        ExpectedCrlf => b"EXPECTED_CRLF\r\n",
        /// The body of a job is longer than is allowed. It was skipped.
        JobTooBig => b"JOB_TOO_BIG\r\n",
    }

    /// The whole answer.
    fn line -> &'static [u8]
}

worded! {
    /// An answer that is always the same.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Word {
        /// The job was deleted.
        Deleted => b"DELETED\r\n",
        /// The job was released.
        Released => b"RELEASED\r\n",
        /// The job was buried.
        Buried => b"BURIED\r\n",
        /// The one job was kicked.
        Kicked => b"KICKED\r\n",
        /// The reservation begins anew.
        Touched => b"TOUCHED\r\n",
        /// The tube was paused.
        Paused => b"PAUSED\r\n",
        /// There is no such job or tube, or not in such a state.
        NotFound => b"NOT_FOUND\r\n",
        /// The tube is the only one that the connection watches.
        NotIgnored => b"NOT_IGNORED\r\n",
        /// No job could be reserved in time.
        TimedOut => b"TIMED_OUT\r\n",
        /// A reservation of the connection is about to end.
        DeadlineSoon => b"DEADLINE_SOON\r\n",
        /// The server accepts no more jobs.
        Draining => b"DRAINING\r\n",
        /// There is no room for the job.
        OutOfMemory => b"OUT_OF_MEMORY\r\n",
        /// The server failed.
        InternalError => b"INTERNAL_ERROR\r\n",
    }

    /// The whole answer.
    fn line -> &'static [u8]
}

worded! {
    /// What a job is an answer to.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum JobWord {
        /// The job was reserved.
        Reserved => b"RESERVED",
        /// The job was only looked at.
        Found => b"FOUND",
    }

    /// The word, without anything around it.
    fn word -> &'static [u8]
}

/// Appends `INSERTED <id>`: the job was put.
#[inline]
pub fn put_inserted(out: &mut Vec<u8>, id: u64) {
    put_number(out, b"INSERTED ", id);
}

/// Appends `KICKED <count>`: this many jobs were kicked.
pub fn put_kicked(out: &mut Vec<u8>, jobs: u64) {
    put_number(out, b"KICKED ", jobs);
}

/// Appends `WATCHING <count>`: the connection watches this many tubes.
pub fn put_watching(out: &mut Vec<u8>, tubes: u64) {
    put_number(out, b"WATCHING ", tubes);
}

/// Appends `USING <tube>`: the connection uses this tube, whose name must be valid.
pub fn put_using(out: &mut Vec<u8>, tube: &[u8]) {
    out.extend_from_slice(b"USING ");
    out.extend_from_slice(tube);
    out.extend_from_slice(b"\r\n");
}

/// Appends a job: its number, the length of its body, and its body.
#[inline]
pub fn put_job(out: &mut Vec<u8>, word: JobWord, id: u64, body: &[u8]) {
    out.extend_from_slice(word.word());
    out.push(b' ');
    put_unsigned(out, id);
    out.push(b' ');
    put_unsigned(out, u64::try_from(body.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
}

/// Appends a line that ends with a number.
#[inline]
fn put_number(out: &mut Vec<u8>, before: &[u8], number: u64) {
    out.extend_from_slice(before);
    put_unsigned(out, number);
    out.extend_from_slice(b"\r\n");
}

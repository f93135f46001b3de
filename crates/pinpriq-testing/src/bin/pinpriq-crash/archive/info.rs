//! The figures of a server, as `INFO` tells them. None of them is judged here.

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::Words;

use crate::fault::Fallible;

/// What a server has told.
pub(crate) struct Info(String);

impl Info {
    /// Asks for all figures.
    pub(crate) fn ask(wire: &mut Resp) -> Fallible<Self> {
        let reply = wire.ask(&Words::new("INFO"))?;
        match reply.as_bytes() {
            Some(text) => Ok(Self(String::from_utf8_lossy(text).into_owned())),
            None => Err(format!("INFO was answered {reply:?}").into()),
        }
    }

    /// One of them.
    pub(crate) fn text(&self, name: &str) -> Fallible<&str> {
        let mut lines = self.0.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(found.ok_or_else(|| format!("INFO has no {name}"))?)
    }

    /// One that is a number.
    pub(crate) fn number(&self, name: &str) -> Fallible<u64> {
        Ok(self.text(name)?.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::Info;

    #[test]
    fn a_figure_is_found_by_its_whole_name() {
        let info = Info("# Server\r\nuptime:7\r\nup:ok\r\n".to_owned());
        assert_eq!(info.text("up").unwrap(), "ok");
        assert_eq!(info.number("uptime").unwrap(), 7);
        assert!(info.text("time").is_err() && info.number("up").is_err());
    }
}

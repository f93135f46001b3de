//! The clients of the policies in the world, and the look at their queues after the trouble.

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::config::DoorName;

use super::{NODES, World};
use crate::cluster_sim::line::{Line, Request};
use crate::cluster_sim::policies::Patron;

/// How long a look may take, in milliseconds.
const LOOK_MS: u64 = 60_000;

impl World {
    /// Lets one of them ask, if it waits for nothing.
    pub(super) fn ask_as_patron(&mut self) {
        if self.patrons.is_empty() {
            return;
        }
        let index = self.dice.index(self.patrons.len());
        let patron = &mut self.patrons[index];
        if patron.line.waits() {
            return;
        }
        let Some((at, client)) = patron.line.at else {
            return self.connect_patron(index);
        };
        if !self.is_awake(at) {
            return;
        }
        let patron = &mut self.patrons[index];
        if patron.policy.leaves(&mut self.dice) {
            if let Some(node) = &mut self.machines[at].node {
                node.cut(client);
            }
            return patron.disconnected();
        }
        let request = patron.policy.ask(&mut self.dice);
        let bytes = patron.line.ask(request);
        self.feed(at, client, &bytes);
    }

    fn connect_patron(&mut self, index: usize) {
        let at = self.dice.index(NODES);
        if let Some(who) = self.connect_to(at, self.patrons[index].line.door) {
            self.patrons[index].line.connected(who);
        }
    }

    /// Lets them read what has come.
    pub(super) fn hear_patrons(&mut self) {
        let mut patrons = std::mem::take(&mut self.patrons);
        for patron in &mut patrons {
            let was_connected = patron.line.at.is_some();
            self.hear_line(&mut patron.line);
            if was_connected && patron.line.at.is_none() {
                patron.disconnected();
            } else {
                patron.listen();
            }
        }
        self.patrons = patrons;
    }

    fn hear_line(&mut self, line: &mut Line) {
        let Some((at, client)) = line.at else { return };
        if !self.is_awake(at) {
            return;
        }
        let Some(node) = &mut self.machines[at].node else { return };
        let mut bytes = Vec::new();
        node.drain_replies(client, &mut bytes);
        let is_connected = node.is_connected(client);
        line.hear(&bytes);
        if !is_connected {
            line.disconnected();
        }
    }

    /// Notes that a node is gone, with all connections to it.
    pub(super) fn lose_patrons_at(&mut self, at: usize) {
        let is_there = |line: &Line| line.at.is_some_and(|(home, _)| home == at);
        let patrons = self.patrons.iter_mut().filter(|patron| is_there(&patron.line));
        patrons.for_each(Patron::disconnected);
        if is_there(&self.looking) {
            self.looking.disconnected();
        }
    }

    /// Waits until all replies have arrived, and judges what is in their queues.
    pub(super) fn judge_policies(&mut self) {
        let until = self.now + LOOK_MS;
        while self.patrons.iter().any(|patron| patron.line.waits()) {
            assert!(self.now < until, "the client of a policy waits for ever");
            self.step(false);
        }
        // A look rests on the window of a tenure alone, so it may miss what is newer than that.
        let until = self.now + self.ttl_ms;
        while self.now < until {
            self.step(false);
        }
        for at in 0..self.patrons.len() {
            let looks = self.patrons[at].policy.looks();
            let until = self.now + LOOK_MS;
            let (mut heard, mut shown) = (0, Vec::new());
            loop {
                let again: Vec<Value> = looks.iter().map(|look| self.look(look)).collect();
                // What is delivered, or goes back with an owner, may be seen on its way.
                let was_heard = std::mem::replace(&mut heard, self.heard_deliveries());
                let is_still = heard == was_heard && again == shown;
                shown = again;
                if is_still {
                    break;
                }
                assert!(self.now < until, "the queues of a policy change for ever");
            }
            self.patrons[at].policy.judge(&shown);
        }
        self.patrons.clear();
    }

    fn heard_deliveries(&self) -> usize {
        self.patrons.iter().map(|patron| patron.deliveries).sum()
    }

    /// Asks until there is an answer. Only for what can be asked twice.
    fn look(&mut self, words: &Words) -> Value {
        let until = self.now + LOOK_MS;
        loop {
            assert!(self.now < until, "{words:?} is not answered after the trouble");
            self.step(false);
            if self.looking.waits() {
                let mut line = std::mem::replace(&mut self.looking, Line::new(DoorName::Resp));
                self.hear_line(&mut line);
                self.looking = line;
                continue;
            }
            match self.looking.take_replies().and_then(|mut replies| replies.pop()) {
                Some(Value::Error(error))
                    if ["TRYAGAIN", "CLUSTERDOWN", "UNKNOWN"].contains(&word_of(&error)) => {}
                Some(Value::Error(error)) => panic!("{words:?} was answered {error}"),
                Some(reply) => return reply,
                None => {}
            }
            if let Some((at, client)) = self.looking.at {
                let bytes = self.looking.ask(Request::of(std::slice::from_ref(words)));
                self.feed(at, client, &bytes);
            } else {
                let at = self.dice.index(NODES);
                if let Some(who) = self.connect_to(at, DoorName::Resp) {
                    self.looking.connected(who);
                }
            }
        }
    }
}

fn word_of(error: &str) -> &str {
    error.split(' ').next().unwrap_or_default()
}
